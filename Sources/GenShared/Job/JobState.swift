/// Where a job stands.
///
/// `queued → running → completed | failed | cancelled`; `running → retrying → running`;
/// `queued | retrying → cancelled | expired | failed`. A terminal state never changes.
public enum JobState: String, Sendable, CaseIterable {
    /// Accepted, waiting for a slot.
    case queued
    /// A worker holds its lease.
    case running
    /// Given back, waiting for its next attempt.
    case retrying
    /// Ended with a result.
    case completed
    /// Ended with an error.
    case failed
    /// Ended because somebody asked for it.
    case cancelled
    /// Ended because nobody ran it in time.
    case expired

    /// Whether the job has ended.
    public var isTerminal: Bool {
        switch self {
        case .completed, .failed, .cancelled, .expired: true
        case .queued, .running, .retrying: false
        }
    }
}
