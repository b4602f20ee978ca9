import GenShared

/// Repeats a call to the store that is harmless to repeat, until it is answered or a time is over.
struct StorePatience: Sendable {
    let scheduler: any Scheduler

    /// - Parameters:
    ///   - limit: how long to go on; the call itself is bounded by the store's own timeouts.
    ///   - isWorthRepeating: judges each `StoreError`.
    /// - Throws: the last error. Cancellation does not shorten it: the end of a job must be written just then.
    func answer<Reply>(
        within limit: Duration, isWorthRepeating: (StoreError) -> Bool, _ call: () async throws -> Reply
    ) async throws -> Reply {
        var backoff = Backoff(first: .milliseconds(100), limit: .seconds(2))
        let deadline = scheduler.now + limit
        while true {
            do { return try await call() } catch let error as StoreError {
                guard isWorthRepeating(error), scheduler.now < deadline else { throw error }
                let pause = backoff.next(on: scheduler)
                // The task may have been cancelled; the pause must be one all the same.
                await scheduler.sleepUncancelled(for: pause)
            }
        }
    }
}
