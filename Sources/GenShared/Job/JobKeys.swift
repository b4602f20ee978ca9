/// Every name that gencluster uses in Redis, made in one place.
///
/// A job's keys share a hash tag (literal braces), so that they stand in one slot of a Redis Cluster.
public struct JobKeys: Sendable {
    /// The pub/sub channel: every event as it happens.
    public let channel: String
    /// The hash with the job's record.
    public let record: String
    /// The stream with the job's log.
    public let events: String
    /// The flag that asks for the job's end.
    public let cancel: String

    /// The names of one job.
    public init(_ id: JobID) {
        channel = "gen:{\(id)}"
        record = "\(channel):job"
        events = "\(channel):events"
        cancel = "\(channel):cancel"
    }

    /// The channel on which workers hear `cancel <id>`.
    public static let control = "gen:control"
    /// The stream of finished jobs, for services that wait for many.
    public static let done = "gen:done"
    /// The sorted set of workers by when they were last seen.
    public static let workers = "gen:workers"
    /// The job of an idempotency key; keys are the submitter's text, so only their digest stands in a name.
    package static func idempotency(_ digest: SHA256Digest) -> String { "gen:idem:\(digest)" }
    /// The active job under a unique key.
    package static func unique(_ digest: SHA256Digest) -> String { "gen:unique:\(digest)" }
    /// The record of one worker.
    public static func worker(_ id: String) -> String { "gen:worker:\(id)" }
}
