/// How a job is handed in, beside what it asks for.
public struct SubmitOptions: Sendable {
    /// Bytes that a key may have.
    public static let keyBytes = 1...256

    /// Names this submission for 24 hours: a repetition of it answers the id of the first, and makes no second job.
    public var idempotencyKey: String?
    /// At most one job under this key is open at a time; kept for 24 hours at most.
    public var uniqueKey: String?
    /// Whether the open job under the unique key is cancelled, and its end waited for, instead of being left alone.
    public var replacesHolder = false
    /// Who asks for that end.
    public var replacedBy = "a later submission"

    /// No keys.
    public init() {}

    /// - Throws: `SubmitError.invalid` for a key that is too long or empty.
    public func check() throws(SubmitError) {
        for (name, key) in [("the idempotency key", idempotencyKey), ("the unique key", uniqueKey)] {
            guard let key, !Self.keyBytes.contains(key.utf8.count) else { continue }
            let reason =
                "has \(key.utf8.count) bytes; \(Self.keyBytes.lowerBound) to \(Self.keyBytes.upperBound) are allowed"
            throw SubmitError.invalid(JobRejection(.invalidInput, field: name, reason: reason))
        }
    }
}
