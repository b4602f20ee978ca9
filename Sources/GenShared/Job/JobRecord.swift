/// What the store knows of a job.
public struct JobRecord: Sendable, Equatable {
    /// Its name.
    public let id: JobID
    /// Where it stands.
    public let state: JobState
    /// What it asks for; `nil` where the message could not be read.
    public let kind: JobKind?
    /// The set of workers that serves it.
    public let pool: String
    /// How urgent it is.
    public let lane: String
    /// Attempts that were started.
    public let attempt: Int
    /// Attempts that failed and counted.
    public let failures: Int
    /// The last event.
    public let last: EventID
    /// When it was accepted.
    public let queuedAt: Timestamp?
    /// When its last attempt began.
    public let startedAt: Timestamp?
    /// When it ended.
    public let finishedAt: Timestamp?
    /// When it is no longer wanted.
    public let expiresAt: Timestamp?
    /// Milliseconds of Redis' clock until which its owner holds it.
    public let leaseUntil: Timestamp?
    /// The worker of the last attempt.
    public let worker: String?
    /// How it ended, as the event that said so; `nil` while it is open.
    public let ending: JobEvent.Content?

    /// How it ended, as the last event of its log; `nil` while it is open.
    public var endingEvent: JobEvent? {
        guard let ending else { return nil }
        // The end is written in the attempt of the event before it, so that one has the number before.
        let before = EventID(attempt: last.attempt, sequence: max(last.sequence, 1) - 1)
        return JobEvent(id: last, previous: before, content: ending)
    }

    /// Reads the fields of the hash.
    /// - Returns: `nil` where there is no state: no record.
    package init?(id: JobID, fields: [String: String]) {
        guard let state = fields["state"].flatMap(JobState.init(rawValue:)) else { return nil }
        func integer(_ name: String) -> Int? { fields[name].flatMap { Int($0) } }
        func time(_ name: String) -> Timestamp? {
            fields[name].flatMap { Int64($0) }.flatMap { $0 > 0 ? Timestamp(milliseconds: $0) : nil }
        }
        self.id = id
        self.state = state
        kind = fields["kind"].flatMap(JobKind.init(rawValue:))
        pool = fields["pool"] ?? ""
        lane = fields["lane"] ?? ""
        attempt = integer("attempt") ?? 0
        failures = integer("failures") ?? 0
        last = fields["last"].flatMap { EventID($0) } ?? .queued
        queuedAt = time("queued_at")
        startedAt = time("started_at")
        finishedAt = time("finished_at")
        expiresAt = time("expires_at")
        leaseUntil = time("lease_until")
        worker = fields["worker"].flatMap { $0.isEmpty ? nil : $0 }
        ending = Self.ending(state, fields)
    }

    /// The fields that `init` reads.
    package static let fieldNames = [
        "state", "kind", "pool", "lane", "attempt", "failures", "last", "queued_at", "started_at", "finished_at",
        "expires_at", "lease_until", "worker", "result", "finish_reason", "usage", "stats", "error", "cancelled_by",
        "cancel_latency_ms",
    ]

    private static func ending(_ state: JobState, _ fields: [String: String]) -> JobEvent.Content? {
        func json(_ name: String) -> JSONValue? {
            // An empty field stands for "none"; a broken one is shown as none, too, rather than hiding the state.
            fields[name].flatMap { try? JSONParser.parse($0, options: .lenient) }
        }
        let usage = json("usage").flatMap(Usage.init(json:))
        switch state {
        case .completed:
            var object: JSONObject = ["result": .string(fields["result"] ?? "")]
            object["finish_reason"] = .string(fields["finish_reason"] ?? "")
            object["usage"] = json("usage")
            object["stats"] = json("stats")
            return Completion(object: object).map(JobEvent.Content.completed)
        case .failed:
            let failure =
                json("error").flatMap(JobFailure.init(json:)) ?? JobFailure(.internal, "no error was recorded")
            return .failed(failure, partial: usage)
        case .cancelled:
            let by = fields["cancelled_by"].flatMap { $0.isEmpty ? nil : $0 }
            return .cancelled(
                by: by, latencyMilliseconds: fields["cancel_latency_ms"].flatMap { Int($0) }, partial: usage)
        case .expired: return .expired
        case .queued, .running, .retrying: return nil
        }
    }
}
