import GenShared

/// Reads a history and says what in it must never happen: the invariants of `docs/reliability.md`.
package struct HistoryChecker {
    /// What a scenario allows beyond the ordinary.
    package struct Rules: Sendable {
        /// How often a backend may have been started for one job.
        package var attempts = 4
        /// Whether attempts that were given back at no cost (drained, preempted, a server lost) are not counted.
        ///
        /// Where a scenario brings none about, they must not hide a repetition.
        package var forgivesReleases = false
        /// Whether Redis itself lost data, so that logs may begin anew and views may be marked.
        package var mayLoseHistory = false
        /// The ends that an accepted job may come to.
        package var ends: Set<String> = ["completed", "cancelled"]

        package init() {}
    }

    /// One thing that must not have happened.
    package struct Violation: Sendable, Hashable, CustomStringConvertible {
        package var invariant: String
        package var job: String
        package var what: String

        package var description: String { "\(invariant) \(job): \(what)" }
    }

    /// What a history held.
    package struct Summary: Sendable, Equatable {
        package var accepted = 0
        package var unknown = 0
        package var refused = 0
        package var completed = 0
        package var ended = 0
        package var attempts = 0
        package var views = 0
        package var events = 0
    }

    private struct JobHistory {
        var submission: HistoryEntry.Submission?
        var expected: String?
        var cancelReply: String?
        var final: HistoryEntry.Final?
        var doneStates: Set<String> = []
        /// The first text that was seen under each id, by anybody.
        var events: [EventID: String] = [:]
        var terminal: String?
    }

    private let rules: Rules
    /// Many watchers see the same event: it is read once.
    private var read: [String: JobEvent?] = [:]
    private var jobs: [String: JobHistory] = [:]
    private var queues: [(name: String, messages: Int)] = []
    package private(set) var violations: [Violation] = []
    package private(set) var summary = Summary()

    package init(_ rules: Rules = Rules()) { self.rules = rules }

    /// Checks a whole file.
    package static func check(_ path: String, _ rules: Rules = Rules()) throws -> (Summary, [Violation]) {
        var checker = HistoryChecker(rules)
        try FaultHistory.read(path) { checker.take($0) }
        checker.finish()
        return (checker.summary, checker.violations)
    }

    /// Takes the next line.
    package mutating func take(_ entry: HistoryEntry) {
        switch entry {
        case .submitted(let job, let submission, let expected):
            jobs[job, default: JobHistory()].submission = submission
            jobs[job]?.expected = expected
        case .cancelled(let job, let reply): jobs[job, default: JobHistory()].cancelReply = reply
        case .viewed(let view): check(view)
        case .final(let final): jobs[final.job, default: JobHistory()].final = final
        case .done(let job, let state): jobs[job, default: JobHistory()].doneStates.insert(state)
        case .queue(let name, let messages): queues.append((name, messages))
        case .fault, .note: break
        }
    }

    /// Judges what only the end shows.
    package mutating func finish() {
        for (id, job) in jobs.sorted(by: { $0.key < $1.key }) {
            count(job)
            checkEnd(id, job)
            checkLog(id, job)
        }
        for queue in queues where queue.messages != 0 {
            fail("I6", queue.name, "\(queue.messages) messages are left over")
        }
    }

    private mutating func fail(_ invariant: String, _ job: String, _ what: String) {
        violations.append(Violation(invariant: invariant, job: job, what: what))
    }

    private mutating func count(_ job: JobHistory) {
        switch job.submission {
        case .accepted: summary.accepted += 1
        case .unknown: summary.unknown += 1
        case .refused: summary.refused += 1
        case nil: break
        }
        guard let final = job.final else { return }
        summary.attempts += final.attempt
        if JobState(rawValue: final.state)?.isTerminal == true { summary.ended += 1 }
        if final.state == "completed" { summary.completed += 1 }
    }

    // MARK: I1, I2, I3, I7, I8

    private mutating func checkEnd(_ id: String, _ job: JobHistory) {
        let state = job.final?.state
        let hasEnded = state.flatMap(JobState.init(rawValue:))?.isTerminal == true
        switch job.submission {
        case .accepted where !hasEnded: fail("I1", id, "was accepted and is \(state ?? "gone")")
        case .accepted where !rules.ends.contains(state ?? ""):
            fail("I1", id, "was accepted and ended as \(state ?? "")")
        case .refused where state == "completed": fail("I1", id, "was refused and ran all the same")
        default: break
        }
        if job.doneStates.count > 1 { fail("I2", id, "gen:done names several ends: \(job.doneStates.sorted())") }
        if let done = job.doneStates.first, hasEnded, done != state {
            fail("I2", id, "gen:done says \(done), the record \(state ?? "")")
        }
        if job.cancelReply == "cancelled" || job.cancelReply == "flagged", hasEnded,
            state != "cancelled" && state != "completed"
        {
            fail("I7", id, "was cancelled and is \(state ?? "")")
        }
        if job.cancelReply == "cancelled", state != "cancelled" { fail("I7", id, "a cancel that took is not its end") }
        if state == "completed", let expected = job.expected, job.final?.result != expected {
            fail("I3", id, "the result is \((job.final?.result ?? "").debugDescription.prefix(80)), not what was said")
        }
        checkBudget(id, job)
    }

    /// A job is preempted three times and never again.
    private static let preemptionLimit = 3

    private mutating func checkBudget(_ id: String, _ job: JobHistory) {
        guard let final = job.final else { return }
        let releases = final.log.compactMap(JobEvent.init(json:)).compactMap { event -> String? in
            if case .retrying(let reason, _, _) = event.content { reason } else { nil }
        }
        let free = rules.forgivesReleases ? releases.count { $0 != "failure" } : 0
        if final.attempt - free > rules.attempts {
            let given = free > 0 ? " and \(free) were given back" : ""
            fail("I8", id, "\(final.attempt) attempts, where \(rules.attempts) are allowed\(given)")
        }
        let preemptions = releases.count { $0 == "preempted" }
        if preemptions > Self.preemptionLimit { fail("I8", id, "was preempted \(preemptions) times") }
    }

    // MARK: The log: I2, I3, I4, I8

    private mutating func checkLog(_ id: String, _ job: JobHistory) {
        guard let final = job.final, !final.log.isEmpty else { return }
        let events = final.log.compactMap(JobEvent.init(json:))
        if events.count != final.log.count { fail("I3", id, "the log holds something that is no event") }
        var previous = EventID.queued
        var text = ""
        var ends = 0
        // Where a log may have lost its beginning, what is left of it is no whole text.
        let isCut = rules.mayLoseHistory && events.first?.previous != .queued
        for event in events {
            if event.previous != previous, !(rules.mayLoseHistory && event == events.first) {
                fail("I3", id, "\(event.id) names \(event.previous) as the one before, which is \(previous)")
            }
            if event.id <= previous { fail("I4", id, "\(event.id) stands after \(previous)") }
            if ends > 0 { fail(event.isTerminal ? "I2" : "I8", id, "\(event.id) stands after the end") }
            previous = event.id
            switch event.content {
            case .started: text = ""
            case .chunk(let piece): text += piece
            case .completed(let completion):
                if completion.result != text, !isCut { fail("I3", id, "the chunks joined are not the result") }
            default: break
            }
            if event.isTerminal {
                ends += 1
                if event.content.terminalState?.rawValue != final.state {
                    fail("I2", id, "the log ends as \(event.content.type), the record as \(final.state)")
                }
            }
            if let seen = job.events[event.id], seen != event.json, !rules.mayLoseHistory {
                fail("I5", id, "\(event.id) was seen as something else than what is in the log")
            }
        }
        if ends != 1, JobState(rawValue: final.state)?.isTerminal == true {
            fail("I2", id, "\(ends) ends are in the log")
        }
    }

    // MARK: A view: I2, I4, I5

    private mutating func check(_ view: HistoryEntry.View) {
        summary.views += 1
        summary.events += view.events.count
        var last = view.from
        var isMarked = false
        var ends = 0
        for line in view.events {
            guard let line else {
                if !rules.mayLoseHistory { fail("I5", view.job, "\(view.watcher) was told that history is lost") }
                isMarked = true
                continue
            }
            guard let event = event(line) else {
                fail("I5", view.job, "\(view.watcher) saw something that is no event")
                continue
            }
            if ends > 0 { fail("I2", view.job, "\(view.watcher) saw \(event.id) after the end") }
            if !isMarked {
                if event.id <= last { fail("I5", view.job, "\(view.watcher) saw \(event.id) after \(last): a double") }
                if event.previous != last {
                    fail("I5", view.job, "\(view.watcher) saw a gap between \(last) and \(event.id)")
                }
            }
            isMarked = false
            last = event.id
            if event.isTerminal { ends += 1 }
            remember(event, view)
        }
        if view.end == .ended, ends != 1 { fail("I5", view.job, "\(view.watcher) ended without seeing the end") }
    }

    private mutating func event(_ line: String) -> JobEvent? {
        if let known = read[line] { return known }
        // Views of a job come close together.
        if read.count > 50_000 { read.removeAll(keepingCapacity: true) }
        let event = JobEvent(json: line)
        read[line] = event
        return event
    }

    /// All who watch a job see the same under the same id, and one end.
    private mutating func remember(_ event: JobEvent, _ view: HistoryEntry.View) {
        if let seen = jobs[view.job]?.events[event.id] {
            if seen != event.json, !rules.mayLoseHistory {
                fail("I5", view.job, "\(view.watcher) saw another \(event.id) than others")
            }
        } else {
            jobs[view.job, default: JobHistory()].events[event.id] = event.json
        }
        guard event.isTerminal else { return }
        if let terminal = jobs[view.job]?.terminal, terminal != event.json {
            fail("I2", view.job, "two ends were seen: \(terminal.prefix(120)) and \(event.json.prefix(120))")
        }
        jobs[view.job]?.terminal = event.json
    }
}
