/// Why the store of jobs did not do what was asked.
public struct StoreError: Error, Sendable, CustomStringConvertible {
    /// What went wrong and where.
    public let message: String
    /// Whether the call certainly had no effect; otherwise it may or may not have had one.
    public let isCertainlyUndone: Bool
    /// Whether the same call may succeed a little later.
    public let isRetryable: Bool
    /// Whether the server could not be reached at all.
    public let isUnreachable: Bool

    /// Whether the job's own keys hold something that is not ours: no other job is concerned, and waiting heals nothing.
    public let isSpoiltRecord: Bool

    package init(
        _ message: String, isCertainlyUndone: Bool, isRetryable: Bool, isUnreachable: Bool = false,
        isSpoiltRecord: Bool = false
    ) {
        self.isSpoiltRecord = isSpoiltRecord
        self.message = message
        self.isCertainlyUndone = isCertainlyUndone
        self.isRetryable = isRetryable
        self.isUnreachable = isUnreachable
    }

    /// One line for a person.
    public var description: String { message }
}
