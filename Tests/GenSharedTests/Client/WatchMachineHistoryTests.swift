import GenTestSupport
import Testing

@testable import GenShared

/// Logs in pages, logs that have lost their beginning, records that are older than what was heard.
@Suite("Watch machine, history")
struct WatchMachineHistoryTests {
    private static let id = JobID(atMilliseconds: 0)
    private let log: [JobEvent]

    init() {
        var events: [JobEvent] = []
        var last = EventID.queued
        for attempt in UInt64(1)...3 {
            let started = JobEvent.Content.started(
                attempt: Int(attempt), worker: "w", backend: nil, model: nil, restarted: attempt > 1)
            var contents = [started] + (0..<7).map { .chunk("\(attempt)\($0)") }
            contents.append(attempt < 3 ? .retrying(reason: "failure", error: nil, delaySeconds: 0) : .expired)
            for (index, content) in contents.enumerated() {
                let next = EventID(attempt: attempt, sequence: UInt64(index + 1))
                events.append(JobEvent(id: next, previous: last, content: content))
                last = next
            }
        }
        log = events
    }

    private func record(after count: Int, _ more: [String: String] = [:]) -> JobRecord? {
        let last = count == 0 ? EventID.queued : log[count - 1].id
        let state = count == log.count ? "expired" : "running"
        return JobRecord(
            id: Self.id, fields: ["state": state, "last": last.description].merging(more) { _, new in new })
    }

    private var queued: JobEvent { JobEvent(id: .queued, previous: .origin, content: .queued) }

    @Test("a log longer than a page is read on, and live events wait until it is read")
    func pages() {
        var machine = WatchMachine(from: .origin, waitsForJob: false)
        #expect(machine.handle(.subscribed) == [.read(from: .queued)])
        #expect(machine.handle(.live(log[9])) == [])
        let first = machine.handle(.page(Array(log[0..<4]), isWhole: false, record(after: 9)))
        #expect(first == [.show(queued)] + log[0..<4].map { .show($0) } + [.read(from: log[3].id)])
        #expect(machine.handle(.silence) == [])
        let second = machine.handle(.page(Array(log[3..<9]), isWhole: true, record(after: 9)))
        // The silence in between asked for one more look.
        #expect(second == log[4...9].map { .show($0) } + [.read(from: log[9].id)])
    }

    @Test("a log whose beginning is gone is marked, then shown from where it begins")
    func trimmed() {
        var machine = WatchMachine(from: .origin, waitsForJob: false)
        _ = machine.handle(.subscribed)
        let actions = machine.handle(.page(Array(log[5..<8]), isWhole: true, record(after: 8)))
        #expect(actions == [.show(queued), .showHistoryLost] + log[5..<8].map { .show($0) })
    }

    @Test("who has seen more than a store that lost its newest is told, and starts over")
    func rolledBack() {
        var machine = WatchMachine(from: log[6].id, waitsForJob: false)
        #expect(machine.handle(.live(log[8])) == [.read(from: log[6].id)])
        #expect(machine.handle(.page([], isWhole: true, record(after: 4))) == [.showHistoryLost, .read(from: .queued)])
        let again = machine.handle(.page(Array(log[0..<4]), isWhole: true, record(after: 4)))
        #expect(again == log[0..<4].map { .show($0) })
    }

    @Test("an id that the store, set back, has used for another event is marked, and the watch starts over")
    func rewritten() {
        var machine = WatchMachine(from: .origin, waitsForJob: false)
        _ = machine.handle(.subscribed)
        _ = machine.handle(.page(Array(log[0..<4]), isWhole: true, record(after: 4)))
        #expect(machine.handle(.subscribed) == [.read(from: log[3].id)])
        let other = JobEvent(id: log[3].id, previous: log[2].id, content: .chunk("another way"))
        #expect(
            machine.handle(.page([other], isWhole: true, record(after: 4))) == [
                .showHistoryLost, .read(from: .queued),
            ])
        let again = machine.handle(.page(Array(log[0..<3]) + [other], isWhole: true, record(after: 4)))
        #expect(again == (log[0..<3] + [other]).map { .show($0) })
    }

    @Test(
        "a record that is gone is marked and waited for, but not for ever; one that comes back is shown from the start")
    func missing() {
        var machine = WatchMachine(from: .origin, waitsForJob: false)
        _ = machine.handle(.subscribed)
        _ = machine.handle(.page(Array(log[0..<4]), isWhole: true, record(after: 4)))
        _ = machine.handle(.silence)
        #expect(machine.handle(.page([], isWhole: true, nil)) == [.showHistoryLost])
        var back = machine
        _ = back.handle(.silence)
        let again = back.handle(.page(Array(log[0..<2]), isWhole: true, record(after: 2)))
        #expect(again == ([queued] + log[0..<2]).map { .show($0) })
        var looks = 0
        while machine.handle(.silence) == [.read(from: .queued)], looks < 100 {
            looks += 1
            if machine.handle(.page([], isWhole: true, nil)) == [.endUnknown] { break }
        }
        #expect(looks == 8)
    }

    @Test("after a reading that failed the next silence, or the next gap, reads again")
    func failedReading() {
        for input in [WatchMachine.Input.silence, .live(log[5])] {
            var machine = WatchMachine(from: log[0].id, waitsForJob: false)
            _ = machine.handle(.subscribed)
            _ = machine.handle(.live(log[1]))
            #expect(machine.readingFailed() == [])
            #expect(machine.handle(input) == [.read(from: log[0].id)])
        }
    }

    @Test("a job whose time in the queue is over, and nobody has said so, is asked to expire")
    func expires() {
        for (state, expires, asks) in [
            ("queued", "1", true), ("retrying", "1", true), ("running", "1", false), ("queued", "9999999999999", false),
            ("queued", "0", false),
        ] {
            var machine = WatchMachine(from: .origin, waitsForJob: false)
            _ = machine.handle(.subscribed)
            let actions = machine.handle(
                .page([], isWhole: true, record(after: 0, ["state": state, "expires_at": expires])))
            #expect(actions.contains(.expire) == asks, "\(state) \(expires)")
        }
    }

    @Test("a job that was seen and is gone ends the watch, also where it was waited for")
    func goneAfterSeen() {
        var machine = WatchMachine(from: log[2].id, waitsForJob: true)
        _ = machine.handle(.subscribed)
        #expect(machine.handle(.page([], isWhole: true, nil)) == [.endUnknown])
        #expect(machine.handle(.silence) == [] && machine.handle(.live(log[3])) == [])
    }

    @Test("after the end nothing is shown")
    func afterTheEnd() {
        var machine = WatchMachine(from: log[log.count - 2].id, waitsForJob: false)
        #expect(machine.handle(.live(log[log.count - 1])) == [.show(log[log.count - 1]), .end])
        #expect(machine.handle(.silence) == [] && machine.handle(.subscribed) == [])
        #expect(machine.handle(.live(log[log.count - 1])) == [])
    }

    @Test(
        "in small pages, with losses on the channel and failed readings, exactly the log is shown",
        arguments: UInt64(0)..<400)
    func randomPages(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var written = Int.random(in: 0...log.count, using: &generator)
        let start = [.origin, .queued] + log[..<written].map(\.id)
        var machine = WatchMachine(from: start.randomElement(using: &generator) ?? .origin, waitsForJob: false)
        let from = machine.last
        let size = Int.random(in: 2...8, using: &generator)
        var shown: [JobEvent] = []
        var reads: [EventID] = []
        var isEnded = false
        func perform(_ actions: [WatchMachine.Action]) {
            for action in actions {
                switch action {
                case .show(let event): shown.append(event)
                case .read(let from): reads.append(from)
                case .end: isEnded = true
                case .showHistoryLost, .endUnknown, .expire: Issue.record("\(action) with seed \(seed)")
                }
            }
        }
        perform(machine.handle(.subscribed))
        for _ in 0..<1000 where !isEnded {
            switch Int.random(in: 0..<10, using: &generator) {
            case 0...2 where written < log.count:
                written += 1
                if Bool.random(using: &generator) { perform(machine.handle(.live(log[written - 1]))) }
            case 3...6:
                guard let from = reads.popLast() else { continue }
                #expect(reads.isEmpty, "two readings at once, seed \(seed)")
                // The record is read first: more may be in the log by then.
                let record = record(after: written)
                if written < log.count, Bool.random(using: &generator) { written += 1 }
                if Int.random(in: 0..<5, using: &generator) == 0 {
                    perform(machine.readingFailed())
                } else {
                    let page = Array(log[..<written].filter { $0.id >= from }.prefix(size))
                    perform(machine.handle(.page(page, isWhole: page.count < size, record)))
                }
            case 7: perform(machine.handle(.silence))
            case 8: perform(machine.handle(.lost))
            default: perform(machine.handle(.subscribed))
            }
        }
        #expect(isEnded, "seed \(seed)")
        let wanted = (from == .origin ? [queued] : []) + log.filter { $0.id > from }
        #expect(shown == wanted, "seed \(seed)")
    }
}
