import GenTestSupport
import Testing

@testable import GenShared

@Suite("Watch machine")
struct WatchMachineTests {
    private let log: [JobEvent]
    private let id = JobID(atMilliseconds: 0)

    init() {
        var events: [JobEvent] = []
        var last = EventID.queued
        func add(_ id: EventID, _ content: JobEvent.Content) {
            events.append(JobEvent(id: id, previous: last, content: content))
            last = id
        }
        for attempt in UInt64(1)...2 {
            add(
                EventID(attempt: attempt, sequence: 1),
                .started(attempt: Int(attempt), worker: "w", backend: nil, model: nil, restarted: attempt > 1))
            for number in 0..<6 { add(last.next, .chunk("\(attempt)\(number)")) }
            add(last.next, attempt == 1 ? .retrying(reason: "failure", error: nil, delaySeconds: 0) : .expired)
        }
        log = events
    }

    /// A record as it stands when the log has that many events.
    private func record(after count: Int) -> JobRecord? {
        let last = count == 0 ? EventID.queued : log[count - 1].id
        return JobRecord(
            id: id, fields: ["state": count == log.count ? "expired" : "running", "last": last.description])
    }

    private func page(_ count: Int, from: EventID) -> WatchMachine.Input {
        .page(log[..<count].filter { $0.id >= from }, isWhole: true, record(after: count))
    }

    @Test("joining late shows the log once, then what is live")
    func lateJoin() {
        var machine = WatchMachine(from: .origin, waitsForJob: false)
        #expect(machine.handle(.subscribed) == [.read(from: .queued)])
        let shown = machine.handle(page(3, from: .queued))
        #expect(shown.count == 4)
        #expect(machine.handle(.live(log[2])) == [])
        #expect(machine.handle(.live(log[3])) == [.show(log[3])])
    }

    @Test("a live event whose predecessor was not seen is answered by reading the log")
    func gap() {
        var machine = WatchMachine(from: log[2].id, waitsForJob: false)
        #expect(machine.handle(.live(log[4])) == [.read(from: log[2].id)])
        #expect(machine.handle(page(6, from: log[2].id)) == [.show(log[3]), .show(log[4]), .show(log[5])])
    }

    @Test("live events that come while the log is read are neither lost nor doubled")
    func duringRead() {
        var machine = WatchMachine(from: log[0].id, waitsForJob: false)
        _ = machine.handle(.subscribed)
        #expect(machine.handle(.live(log[2])) == [])
        #expect(machine.handle(.live(log[3])) == [])
        #expect(
            machine.handle(page(3, from: log[0].id)) == [.show(log[1]), .show(log[2]), .show(log[3])])
    }

    @Test("a log that no longer begins with the last event seen is marked, and shown from its start")
    func historyLost() {
        var machine = WatchMachine(from: log[3].id, waitsForJob: false)
        _ = machine.handle(.subscribed)
        #expect(machine.handle(.page([], isWhole: true, record(after: 5))) == [.showHistoryLost, .read(from: .queued)])
        #expect(machine.handle(page(2, from: .queued)) == [.show(log[0]), .show(log[1])])
    }

    @Test("when the log is gone the record's end is shown as one event")
    func logGone() {
        var machine = WatchMachine(from: .origin, waitsForJob: false)
        _ = machine.handle(.subscribed)
        let actions = machine.handle(.page([], isWhole: true, record(after: log.count)))
        guard case .show(let end)? = actions.dropLast().last else {
            Issue.record("no end in \(actions)")
            return
        }
        #expect(end.content == .expired && end.id == log[log.count - 1].id && actions.last == .end)
    }

    @Test("a watch from the terminal event ends at once")
    func fromTheEnd() {
        var machine = WatchMachine(from: log[log.count - 1].id, waitsForJob: false)
        _ = machine.handle(.subscribed)
        #expect(machine.handle(page(log.count, from: log[log.count - 1].id)) == [.end])
    }

    @Test("an unknown job ends the watch, unless it is waited for")
    func unknownJob() {
        var machine = WatchMachine(from: .origin, waitsForJob: false)
        _ = machine.handle(.subscribed)
        #expect(machine.handle(.page([], isWhole: true, nil)) == [.endUnknown])
        var patient = WatchMachine(from: .origin, waitsForJob: true)
        _ = patient.handle(.subscribed)
        #expect(patient.handle(.page([], isWhole: true, nil)) == [])
        #expect(patient.handle(.live(JobEvent(id: .queued, previous: .origin, content: .queued))).count == 1)
    }

    @Test("whatever is lost and whenever one joins, exactly the log is shown", arguments: UInt64(0)..<2000)
    func everyInterleaving(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var written = Int.random(in: 0...log.count, using: &generator)
        let start =
            written == 0 ? EventID.origin : [.origin, log[written - 1].id].randomElement(using: &generator) ?? .origin
        var machine = WatchMachine(from: start, waitsForJob: false)
        var shown: [JobEvent] = []
        var pendingRead: EventID?
        var isEnded = false
        func perform(_ actions: [WatchMachine.Action]) {
            for action in actions {
                switch action {
                case .show(let event): shown.append(event)
                case .read(let from): pendingRead = from
                case .end: isEnded = true
                case .showHistoryLost, .endUnknown, .expire: Issue.record("\(action) with seed \(seed)")
                }
            }
        }
        perform(machine.handle(.subscribed))
        for _ in 0..<400 where !isEnded {
            switch Int.random(in: 0..<4, using: &generator) {
            case 0 where written < log.count:
                written += 1
                // One in three is lost on the way.
                if Int.random(in: 0..<3, using: &generator) > 0 { perform(machine.handle(.live(log[written - 1]))) }
            case 1:
                if let from = pendingRead {
                    pendingRead = nil
                    perform(machine.handle(page(written, from: from)))
                }
            case 2: perform(machine.handle(.silence))
            default:
                // An old one comes again.
                if written > 0 { perform(machine.handle(.live(log[Int.random(in: 0..<written, using: &generator)]))) }
            }
        }
        #expect(isEnded)
        #expect(shown.filter { $0.id > max(start, .queued) } == log.filter { $0.id > max(start, .queued) })
        #expect(Set(shown.map(\.id)).count == shown.count)
    }
}
