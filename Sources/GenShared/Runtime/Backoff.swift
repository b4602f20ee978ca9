/// Pauses between tries: doubling from the first to the limit, each with a random half taken off, so that many
/// clients that lost one server do not come back in step.
package struct Backoff: Sendable {
    private let first: Duration
    private let limit: Duration
    private var current: Duration

    package init(first: Duration, limit: Duration) {
        self.first = first
        self.limit = limit
        current = first
    }

    /// The pause before the next try.
    package mutating func next() -> Duration {
        var generator = SystemRandomNumberGenerator()
        return next(using: &generator)
    }

    package mutating func next(using generator: inout some RandomNumberGenerator) -> Duration {
        defer { current = min(current * 2, limit) }
        return current * Double.random(in: 0.5...1, using: &generator)
    }

    /// After a success: the next pause is the first again.
    package mutating func reset() { current = first }
}
