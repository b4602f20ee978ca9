/// The store of jobs as those see it who submit, cancel and look.
///
/// Each call ends by itself in bounded time, with an answer or an error, but that time may be longer than a caller's
/// deadline: a slow resolver alone may take half a minute.
package protocol SubmissionStore: Sendable {
    /// Makes the record of a job that is about to be published.
    /// - Throws: `StoreError`.
    func create(_ job: Job, body: [UInt8]) async throws -> CreateReply
    /// Asks for a job's end.
    /// - Throws: `StoreError`.
    func cancel(_ id: JobID, by: String) async throws -> CancelReply
    /// Ends a job that never ran; makes its record of what is known where there is none.
    /// - Returns: the state in which the job has ended, now or before; `nil` where it runs after all.
    /// - Throws: `StoreError`.
    func reject(_ id: JobID, failure: JobFailure, rejected: RejectedMessage) async throws -> JobState?
    /// The body of the job's message, or `nil` where there is no record.
    /// - Throws: `StoreError`.
    func message(_ id: JobID) async throws -> [UInt8]?
    /// Ends a job whose time is over, if it is.
    /// - Throws: `StoreError`.
    func expire(_ id: JobID) async throws
    /// The job's record, or `nil` where there is none.
    /// - Throws: `StoreError`.
    func record(_ id: JobID) async throws -> JobRecord?
    /// Events of the log from that one on, itself included, oldest first; at most `limit`.
    /// - Throws: `StoreError`.
    func events(_ id: JobID, from: EventID, limit: Int) async throws -> LogPage
}

/// A part of a job's log.
package struct LogPage: Sendable {
    /// Events as JSON, oldest first.
    package var lines: [String]
    /// Whether there was no more at the moment.
    package var isWhole: Bool

    package init(lines: [String], isWhole: Bool) {
        self.lines = lines
        self.isWhole = isWhole
    }
}

/// What is known of a message whose job never ran.
package struct RejectedMessage: Sendable {
    package var body: [UInt8]
    package var kind: String
    package var pool: String
    package var lane: Lane

    package init(body: [UInt8], kind: String, pool: String, lane: Lane) {
        self.body = body
        self.kind = kind
        self.pool = pool
        self.lane = lane
    }
}

/// What `create` found.
package enum CreateReply: Sendable, Equatable {
    case created
    case exists(state: JobState, isSameBody: Bool)
}

/// What a cancel met.
public enum CancelReply: Sendable, Equatable {
    /// Nobody ran the job: it ended at once.
    case cancelled
    /// A worker runs it and was told.
    case flagged
    /// It had ended before.
    case terminal(JobState)
    /// There is no such job; should it still arrive, it ends at once.
    case unknown
}
