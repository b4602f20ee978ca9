import GenShared

/// Finds jobs that wait for a message which is gone, and publishes it again.
///
/// A lane's open records are counted against the messages that are ready in its queue and in the retry tiers. Where
/// these are at least as many, nothing is missing. Otherwise every stale record's message is published again: which of
/// them is missing cannot be seen, and a second copy is harmless, since the claim of a job that has ended or runs
/// does nothing. Such copies, and messages of jobs that were cancelled, count as messages, too: they hide losses until
/// workers have taken them.
struct Resend: Sendable {
    let store: RedisJobStore
    let publisher: any JobPublisher
    /// Messages ready in a queue, or `nil` where there is no such queue.
    let ready: @Sendable (_ queue: String) async throws -> Int?
    let isDryRun: Bool

    /// Messages published at a time, and the time that takes at least: no more than 1,000 a second.
    private static let batch = 50
    private static let batchTime: Duration = .milliseconds(50)

    struct Count: Equatable {
        var open = 0
        var stale = 0
    }

    func run() async throws -> ExitCode {
        let now = try await store.time()
        var counts: [OpenRecord.Route: Count] = [:]
        try await visit(now) { record in
            counts[record.route, default: Count()].open += 1
            if record.isStale(at: now) { counts[record.route, default: Count()].stale += 1 }
        }
        var inTiers = 0
        for tier in Topology.tiers { inTiers += try await ready("gen.retry.v1.\(tier.name)") ?? 0 }
        var inQueues: [OpenRecord.Route: Int] = [:]
        for route in counts.keys { inQueues[route] = try await ready(route.queue) }
        let short = Self.short(counts, inQueues: inQueues, inTiers: inTiers)
        report(counts, inQueues, inTiers, short)
        guard !short.isEmpty else { return .done }
        guard !isDryRun else { return .done }
        return try await publish(short, now)
    }

    /// The lanes whose queues hold too few messages.
    ///
    /// A tier holds messages of all lanes: together the lanes may lack what is there.
    static func short(
        _ counts: [OpenRecord.Route: Count], inQueues: [OpenRecord.Route: Int], inTiers: Int
    ) -> Set<OpenRecord.Route> {
        let lacking = counts.mapValues(\.open).map { route, open in (route, max(0, open - (inQueues[route] ?? 0))) }
        guard lacking.map(\.1).reduce(0, +) > inTiers else { return [] }
        return Set(lacking.filter { $0.1 > 0 && (counts[$0.0]?.stale ?? 0) > 0 }.map(\.0))
    }

    /// What "enough messages" does not say.
    private static let doubt =
        " that can be told: messages of jobs that have ended count, too, until a worker has taken them"

    private func report(
        _ counts: [OpenRecord.Route: Count], _ inQueues: [OpenRecord.Route: Int], _ inTiers: Int,
        _ short: Set<OpenRecord.Route>
    ) {
        for (route, count) in counts.sorted(by: { $0.key.queue < $1.key.queue }) {
            let there = inQueues[route].map { "\($0) messages" } ?? "no such queue"
            Terminal.write(
                TerminalText.safe(
                    "\(route.pool).\(route.lane): \(count.open) waiting jobs (\(count.stale) for over a minute), \(there)\n"
                ))
        }
        Terminal.write("retry tiers: \(inTiers) messages\n")
        let stale = short.reduce(0) { $0 + (counts[$1]?.stale ?? 0) }
        if short.isEmpty {
            Terminal.write("No message is missing\(inQueues.isEmpty && inTiers == 0 ? "" : Self.doubt).\n")
        } else if isDryRun {
            Terminal.write("Messages are missing: \(stale) would be published again.\n")
        }
    }

    /// What became of jobs that were looked at once more.
    struct Outcomes: Sendable, Equatable {
        var published = 0
        /// Jobs that have ended since they were counted, or that have no message to publish.
        var skipped = 0
        var failed = 0
        var firstFailure: String?

        mutating func count(_ outcome: Outcome) {
            switch outcome {
            case .published: published += 1
            case .skipped: skipped += 1
            case .failed(let reason):
                failed += 1
                firstFailure = firstFailure ?? reason
            }
        }

        /// A line for a person.
        var line: String {
            "\(published) messages published again"
                + (skipped > 0 ? "; \(skipped) jobs need none, or have none any more" : "") + "."
        }
    }

    enum Outcome: Sendable, Equatable {
        case published
        case skipped
        case failed(String)
    }

    private func publish(_ routes: Set<OpenRecord.Route>, _ now: Timestamp) async throws -> ExitCode {
        var waiting: [JobID] = []
        var outcomes = Outcomes()
        var done = 0
        func flush() async throws {
            let began = ContinuousClock.now
            for outcome in try await publish(waiting) { outcomes.count(outcome) }
            done += waiting.count
            waiting = []
            if Terminal.isErrorInteractive {
                Terminal.writeErrorText("\r\(done) looked at, \(outcomes.failed) failed ")
            }
            try await Task.sleep(for: max(.zero, Self.batchTime - (.now - began)))
        }
        try await visit(now) { record in
            guard routes.contains(record.route), record.isStale(at: now) else { return }
            waiting.append(record.id)
            if waiting.count >= Self.batch { try await flush() }
        }
        if !waiting.isEmpty { try await flush() }
        if Terminal.isErrorInteractive { Terminal.writeError("") }
        Terminal.write("\(outcomes.line)\n")
        guard let first = outcomes.firstFailure else { return .done }
        Terminal.writeError("gendispatcher: \(outcomes.failed) could not be published: \(TerminalText.safe(first))")
        return .failed
    }

    private func publish(_ ids: [JobID]) async throws -> [Outcome] {
        try await withThrowingTaskGroup(of: Outcome.self) { group in
            for id in ids { group.addTask { try await publish(id) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
    }

    func publish(_ id: JobID) async throws -> Outcome {
        // What has ended since it was counted needs no message any more.
        guard let record = try await store.record(id), !record.state.isTerminal,
            let body = try await store.message(id), let lane = Lane(rawValue: record.lane)
        else { return .skipped }
        let message = JobMessage(
            id: id, kind: record.kind?.rawValue ?? "", pool: record.pool, lane: lane, body: body)
        do throws(PublisherError) {
            switch try await publisher.publish(message, within: .seconds(10)) {
            case .confirmed: return .published
            case .returned(let reason), .notSent(let reason), .unknown(let reason): return .failed("\(id): \(reason)")
            case .nacked: return .failed("\(id): its queue is full")
            }
        } catch { return .failed("\(id): \(error.message)") }
    }

    private func visit(_ now: Timestamp, _ visitor: (OpenRecord) async throws -> Void) async throws {
        var cursor: String? = "0"
        while let current = cursor {
            let page = try await store.openRecords(from: current, now: now)
            for record in page.records { try await visitor(record) }
            cursor = page.next
        }
    }
}
