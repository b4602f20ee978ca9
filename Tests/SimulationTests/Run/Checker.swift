import GenShared
import GenTestSupport

/// Looks at every change of the world, and says which rule was broken.
///
/// `@unchecked`: see `Simulation`.
final class Checker: @unchecked Sendable {
    /// What was known of a job after the last change.
    private struct Known {
        var log = 0
        var last = EventID.queued
        var state: JobState?
        var lease: Int64 = 0
        var notBefore: Int64 = 0
        var text = ""
        var takeovers: Int64 = 0
        var countedFailures = 0
        var preemptions = 0
    }

    private let redis: SimulatedRedis
    private let simulation: Simulation
    private var known: [JobID: Known] = [:]
    private var starts: [String: Int] = [:]
    private(set) var violations: [String] = []
    private var ended: Set<JobID> = []
    /// Set where nothing is done to anybody: then no lease may be lost.
    var isQuiet = false
    /// Jobs that were accepted for sure.
    var accepted: Set<JobID> = []
    private(set) var wasRolledBack = false
    var plans: [String: BackendPlan] = [:]

    init(_ redis: SimulatedRedis, _ simulation: Simulation) {
        self.redis = redis
        self.simulation = simulation
    }

    func violate(_ what: String) {
        if violations.count < 20 { violations.append("\(simulation.elapsed.milliseconds) ms: \(what)") }
    }

    // MARK: The backend

    func started(_ job: String) -> Int {
        starts[job, default: 0] += 1
        return starts[job] ?? 0
    }

    func starts(of job: String) -> Int { starts[job] ?? 0 }

    /// Whether its end was stored, even if a failover has taken that back and nothing is left of the job.
    func hasEnded(_ id: JobID) -> Bool { redis.rules.entries[id]?.state == nil && ended.contains(id) }

    private var takingBack: JobID?

    /// The next start of that job follows an attempt of the same worker that is over: no crash.
    func takenBack(_ id: JobID) { takingBack = id }

    // MARK: The store

    func rolledBack() {
        wasRolledBack = true
        known = [:]
        for (id, entry) in redis.rules.entries { known[id] = absorb(entry) }
    }

    /// Looks at the jobs that have changed.
    func storeChanged() {
        for (id, entry) in redis.rules.entries {
            let before = known[id] ?? Known()
            guard
                entry.log.count != before.log || entry.fields["state"] != before.state?.rawValue
                    || entry.integer("lease_until") != before.lease
            else { continue }
            known[id] = judge(id, entry, before)
        }
    }

    private func judge(_ id: JobID, _ entry: StoreRules.Entry, _ before: Known) -> Known {
        var now = before
        if let state = before.state, state.isTerminal, entry.state != state {
            violate("\(id): \(state) became \(entry.state.map(\.rawValue) ?? "nothing")")
        }
        for (number, line) in entry.log[min(before.log, entry.log.count)...] {
            guard let event = JobEvent(json: line) else {
                violate("\(id): \(line) is no event")
                continue
            }
            if event.id != number || event.id <= now.last { violate("\(id): \(event.id) after \(now.last)") }
            if event.previous != now.last { violate("\(id): \(event.id) names \(event.previous), not \(now.last)") }
            if now.state?.isTerminal == true { violate("\(id): \(event.id) after the end") }
            judge(id, event, entry, &now)
            now.last = event.id
        }
        if entry.last != now.last { violate("\(id): the record says \(entry.last), the log \(now.last)") }
        if entry.state?.isTerminal == true { ended.insert(id) }
        now.log = entry.log.count
        now.state = entry.state
        now.lease = entry.integer("lease_until")
        now.notBefore = entry.integer("not_before")
        return now
    }

    private func judge(_ id: JobID, _ event: JobEvent, _ entry: StoreRules.Entry, _ now: inout Known) {
        let time = simulation.milliseconds
        switch event.content {
        case .started:
            if now.notBefore > time { violate("\(id): started before its time") }
            if now.state == .running, takingBack != id {
                now.takeovers += 1
                if now.lease > time { violate("\(id): started under another's live lease") }
                if isQuiet { violate("\(id): a lease was lost although nothing was done to anybody") }
            }
            if entry.integer("crashes") < now.takeovers, !wasRolledBack {
                violate("\(id): \(now.takeovers) crashes, \(entry.integer("crashes")) counted")
            }
            takingBack = nil
            now.text = ""
            now.state = .running
        case .chunk(let text): now.text += text
        case .retrying(let reason, _, _):
            if reason == "failure" { now.countedFailures += 1 }
            if now.countedFailures > 3, !wasRolledBack { violate("\(id): more failures than are allowed") }
            if reason == "preempted" { now.preemptions += 1 }
            if now.preemptions > 3, !wasRolledBack { violate("\(id): pushed out more than three times") }
            now.state = .retrying
        case .completed(let completion):
            if completion.result != now.text { violate("\(id): the result is not the joined chunks") }
            let job = entry.fields["message"].map { Self.name($0) } ?? ""
            let pieces = plans[job]?.pieces ?? 0
            let isOneStart = (1...max(1, starts(of: job))).contains {
                SimulatedBackend.text(job, $0, pieces) == completion.result
            }
            if !isOneStart { violate("\(id): the result is no start's answer: \(completion.result)") }
            if entry.flag != nil { violate("\(id): completed although a cancel had been taken") }
            now.state = .completed
        case .failed, .cancelled, .expired: now.state = event.content.terminalState
        default: break
        }
    }

    private func absorb(_ entry: StoreRules.Entry) -> Known {
        var now = Known(
            log: entry.log.count, last: entry.last, state: entry.state, lease: entry.integer("lease_until"),
            notBefore: entry.integer("not_before"))
        for (_, line) in entry.log {
            guard let event = JobEvent(json: line) else { continue }
            if case .started = event.content { now.text = "" }
            if case .chunk(let text) = event.content { now.text += text }
        }
        return now
    }

    /// The job's text names its plan.
    private static func name(_ message: String) -> String {
        (try? JSONParser.parse(message))?["input"]?["text"]?.string ?? ""  // A body of ours; "" has no plan.
    }

    // MARK: The broker

    func lastCopyGone(_ text: String) {
        guard let id = JobID(text), accepted.contains(id), !wasRolledBack else { return }
        let state = redis.rules.entries[id]?.state
        if state?.isTerminal != true {
            violate("\(id): the last copy of its message is gone, and it is \(state.map(\.rawValue) ?? "unknown")")
        }
    }
}
