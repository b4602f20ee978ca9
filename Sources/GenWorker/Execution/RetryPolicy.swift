import GenShared

/// How long a job waits after a failure that may heal.
enum RetryPolicy {
    /// Attempts that may fail; the claim enforces the same bound.
    static let failureLimit = 4

    /// The pause before the next attempt, or `nil` where this failure was the last that counts.
    /// - Parameter failures: failures so far, this one included.
    static func delay(afterFailures failures: Int) -> Duration? {
        guard failures < failureLimit else { return nil }
        let delays: [Duration] = [.seconds(2), .seconds(10), .seconds(60)]
        return delays[min(max(failures, 1), delays.count) - 1]
    }
}
