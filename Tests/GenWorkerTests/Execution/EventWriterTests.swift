import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

@Suite("Event writer", .timeLimit(.minutes(1)))
struct EventWriterTests {
    private let store = MemoryExecutionStore()
    private let job = Job(id: JobID(atMilliseconds: 1), kind: .reply, input: JobInput(text: "x"))

    private func writer() async throws -> (EventWriter, RunningJob) {
        let running = RunningJob(id: job.id)
        guard
            case .claimed(let claim) = try await store.claim(
                ClaimRequest(job: job, body: [], owner: "o", startedFields: ""))
        else {
            throw CancellationError()
        }
        return (
            EventWriter(id: job.id, owner: "o", last: claim.last, store: store, running: running), running
        )
    }

    @Test("one append is under way at a time, and text that comes meanwhile is joined into the next")
    func coalesces() async throws {
        let (writer, _) = try await writer()
        store.holdAppends()
        for piece in ["a", "b", "c", "d"] { await writer.write(.chunk(piece)) }
        await writer.write(.reasoning("r"))
        await writer.write(.chunk("e"))
        #expect(store.batches.count == 1)
        store.letAppendsGo()
        #expect(await writer.drain().events.isEmpty)
        #expect(store.batches.count == 2 && store.text == "abcde")
        #expect(store.log.map(\.content).dropFirst() == [.chunk("a"), .chunk("bcd"), .reasoning("r"), .chunk("e")])
        for (before, after) in zip(store.log, store.log.dropFirst()) { #expect(after.previous == before.id) }
    }

    @Test("an unknown outcome is sent again byte for byte")
    func repeats() async throws {
        let (writer, running) = try await writer()
        store.failNextAppends(2)
        await writer.write(.chunk("a"))
        await store.waitForAppends(3)
        _ = await writer.drain()
        let first = store.batches[0].events.map(\.json)
        #expect(store.batches.allSatisfy { $0.events.map(\.json) == first && $0.previous == store.batches[0].previous })
        #expect(store.text == "a" && running.reason == nil)
    }

    @Test("what the store has lost is sent again from there on")
    func behind() async throws {
        let (writer, _) = try await writer()
        for piece in ["a", "b", "c"] {
            await writer.write(.chunk(piece))
            _ = await writer.drain()
        }
        let whole = store.log
        store.rollBack(to: 2)
        await writer.write(.chunk("d"))
        #expect(await writer.drain().events.isEmpty)
        #expect(store.text == "abcd" && store.log.dropLast() == whole[...])
    }

    @Test("once fenced, nothing more is written and the attempt is stopped")
    func fenced() async throws {
        let (writer, running) = try await writer()
        store.steal()
        await writer.write(.chunk("a"))
        await writer.write(.chunk("b"))
        _ = await writer.drain()
        #expect(store.batches.count == 1 && running.reason == .fenced)
    }

    @Test("what is not under way when the attempt ends is handed over for the end to carry")
    func drain() async throws {
        let (writer, _) = try await writer()
        store.holdAppends()
        await writer.write(.chunk("a"))
        await writer.write(.chunk("b"))
        async let rest = writer.drain()
        store.letAppendsGo()
        let handed = await rest
        // Either it went out by itself before the drain looked, or it is handed over: never both, never neither.
        let written = store.log.compactMap { if case .chunk(let text) = $0.content { text } else { nil } }.joined()
        let left = handed.events.compactMap { JobEvent(json: $0.json) }.compactMap {
            if case .chunk(let text) = $0.content { text } else { nil }
        }.joined()
        #expect(written + left == "ab")
    }
}
