import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

/// What the writer does with each answer of the store.
@Suite("Event writer, answers", .timeLimit(.minutes(1)))
struct EventWriterAnswersTests {
    private static let id = JobID(atMilliseconds: 1)
    private static let started = EventID(attempt: 2, sequence: 1)
    private let store = HeldStore()
    private let running = RunningJob(id: id)
    private let writer: EventWriter

    init() {
        writer = EventWriter(id: Self.id, owner: "o", last: Self.started, store: store, running: running)
    }

    private let away = StoreError("away", isCertainlyUndone: false, isRetryable: true)

    @Test("the first text goes out at once, under the owner's name, after the attempt's start")
    func first() async {
        await writer.write(.chunk("a"))
        let batch = store.asked.elements[0].batch
        #expect(batch.id == Self.id && batch.owner == "o" && batch.previous == Self.started)
        #expect(batch.lines == ["{\"id\":\"2-2\",\"prev\":\"2-1\",\"type\":\"chunk\",\"text\":\"a\"}"])
    }

    @Test("B42: nothing more goes out before the answer, however much is written")
    func oneInFlight() async {
        for piece in ["a", "b", "c"] { await writer.write(.chunk(piece)) }
        #expect(store.asked.count == 1)
        store.asked.elements[0].answer(.success(.ok(isCancelWanted: false)))
        #expect(store.asked.elements.map(\.batch.text) == ["a", "bc"])
        store.asked.elements[1].answer(.success(.ok(isCancelWanted: false)))
        #expect(store.asked.count == 2)
    }

    @Test("what is joined: text with text, reasoning with reasoning, only the newest progress of a phase")
    func joins() async throws {
        await writer.write(.chunk("a"))
        for content in [
            JobEvent.Content.progress(Progress(phase: .prompt, fraction: 0.1)),
            .progress(Progress(phase: .prompt, fraction: 0.9)), .progress(Progress(phase: .generating)),
            .reasoning("r"), .reasoning("s"), .chunk("b"), .chunk("c"), .reasoning("t"),
        ] {
            await writer.write(content)
        }
        store.asked.elements[0].answer(.success(.ok(isCancelWanted: false)))
        let events = store.asked.elements[1].batch.lines.compactMap(JobEvent.init(json:))
        #expect(
            events.map(\.content) == [
                .progress(Progress(phase: .prompt, fraction: 0.9)), .progress(Progress(phase: .generating)),
                .reasoning("rs"), .chunk("bc"), .reasoning("t"),
            ])
        #expect(events.map(\.id.sequence) == [3, 4, 5, 6, 7])
        #expect(events.map(\.previous.sequence) == [2, 3, 4, 5, 6])
    }

    @Test("an answer that a cancel is wanted stops the attempt")
    func cancelWanted() async {
        await writer.write(.chunk("a"))
        store.asked.elements[0].answer(.success(.ok(isCancelWanted: true)))
        #expect(running.reason == .cancelled)
        #expect(await writer.drain().previous == Self.started.next)
    }

    @Test("once fenced, nothing is sent any more, and the drain does not wait")
    func fenced() async {
        await writer.write(.chunk("a"))
        await writer.write(.chunk("b"))
        store.asked.elements[0].answer(.success(.fenced))
        await writer.write(.chunk("c"))
        _ = await writer.drain()
        #expect(running.reason == .fenced && store.asked.count == 1)
    }

    @Test("an error that will not heal gives the attempt up")
    func permanentError() async {
        await writer.write(.chunk("a"))
        store.asked.elements[0].answer(.failure(StoreError("no", isCertainlyUndone: true, isRetryable: false)))
        await writer.write(.chunk("b"))
        _ = await writer.drain()
        #expect(running.reason == .storeLost("no") && store.asked.count == 1)
    }

    @Test("after an unknown outcome the same events go out again, byte for byte, and later text behind them")
    func unknownOutcome() async {
        await writer.write(.chunk("a"))
        await writer.write(.chunk("b"))
        store.asked.elements[0].answer(.failure(away))
        let asked = await store.asked.wait(for: 2)
        #expect(asked[1].batch.previous == Self.started)
        #expect(asked[1].batch.lines.first == asked[0].batch.lines.first && asked[1].batch.text == "ab")
        asked[1].answer(.success(.ok(isCancelWanted: false)))
        #expect(await writer.drain().events.isEmpty)
        #expect(running.reason == nil)
    }

    @Test("a store that is behind gets everything after its last event again, byte for byte")
    func behind() async {
        for (index, piece) in ["a", "b", "c"].enumerated() {
            await writer.write(.chunk(piece))
            store.asked.elements[index].answer(.success(.ok(isCancelWanted: false)))
        }
        await writer.write(.chunk("d"))
        store.asked.elements[3].answer(.success(.behind(Self.started.next)))
        let sent = store.asked.elements.map(\.batch)
        #expect(sent.count == 5 && sent[4].previous == Self.started.next)
        #expect(sent[4].lines == sent[1].lines + sent[2].lines + sent[3].lines)
    }

    @Test("a drain waits for the answer that is out, and says what the store has")
    func drain() async {
        await writer.write(.chunk("a"))
        async let rest = writer.drain()
        store.asked.elements[0].answer(.success(.ok(isCancelWanted: false)))
        let handed = await rest
        #expect(handed.previous == Self.started.next && handed.events.isEmpty)
        #expect(writer.events(after: Self.started).count == 1)
    }

    /// The store's side of a random run: takes, forgets, loses answers.
    private struct FickleStore {
        var generator: SeededGenerator
        var log: [(id: EventID, json: String)] = []
        var failuresLeft = 2
        var isReliable = false

        /// - Returns: whether the writer now waits before it sends again.
        mutating func answer(_ asked: HeldStore.Asked) -> Bool {
            let last = log.last?.id ?? EventWriterAnswersTests.started
            guard last >= asked.batch.previous else {
                asked.answer(.success(.behind(last)))
                return false
            }
            let fresh = asked.batch.events.filter { $0.id > last }
            let dice = isReliable ? 9 : Int.random(in: 0..<10, using: &generator)
            if dice == 0, failuresLeft > 0 {
                // Taken or not: nobody knows.
                failuresLeft -= 1
                if Bool.random(using: &generator) { log += fresh }
                asked.answer(.failure(StoreError("away", isCertainlyUndone: false, isRetryable: true)))
                return true
            }
            log += fresh
            asked.answer(.success(.ok(isCancelWanted: false)))
            // A failover after the answer: the newest are gone.
            if dice == 1 { log.removeLast(Int.random(in: 0...min(3, log.count), using: &generator)) }
            return false
        }
    }

    @Test("whatever the answers are, the log is what was written: no gap, no double", arguments: UInt64(0)..<30)
    func randomAnswers(_ seed: UInt64) async {
        var fickle = FickleStore(generator: SeededGenerator(seed: seed))
        var generator = SeededGenerator(seed: seed + 1000)
        var written = ""
        var answered = 0
        var isPausing = false
        for number in 0..<60 {
            written += "\(number) "
            await writer.write(.chunk("\(number) "))
            if Bool.random(using: &generator), answered < store.asked.count {
                isPausing = fickle.answer(store.asked.elements[answered])
                answered += 1
            }
        }
        fickle.isReliable = true
        func logged() -> String {
            EventBatch(id: Self.id, owner: "o", previous: .origin, events: fickle.log).text
        }
        while logged() != written, !Task.isCancelled {
            if answered == store.asked.count, !isPausing {
                // Only the next text tells the writer what the store has lost.
                written += "."
                await writer.write(.chunk("."))
            }
            let asked = await store.asked.wait(for: answered + 1)
            guard answered < asked.count else { return }
            isPausing = fickle.answer(asked[answered])
            answered += 1
        }
        var before = Self.started
        for event in fickle.log.compactMap({ JobEvent(json: $0.json) }) {
            #expect(event.previous == before && event.id == before.next, "seed \(seed)")
            before = event.id
        }
        #expect(logged() == written && running.reason == nil, "seed \(seed)")
    }
}
