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

    package init(_ message: String, isCertainlyUndone: Bool, isRetryable: Bool, isUnreachable: Bool = false) {
        self.message = message
        self.isCertainlyUndone = isCertainlyUndone
        self.isRetryable = isRetryable
        self.isUnreachable = isUnreachable
    }

    /// One line for a person.
    public var description: String { message }
}
