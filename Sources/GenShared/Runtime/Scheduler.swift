/// Time, chance and tasks, as code sees them that decides: the system's own in the programs, simulated ones in tests,
/// where a seed fixes the order of everything that happens.
///
/// What waits, measures a time or starts a task of its own in the deciding code does it through this.
package protocol Scheduler: Sendable {
    /// This moment; only ever rises, and has nothing to do with the time of day.
    var now: ContinuousClock.Instant { get }
    /// The time of day.
    var timestamp: Timestamp { get }
    /// Waits that long.
    /// - Throws: `CancellationError` as soon as the task is cancelled.
    func sleep(for duration: Duration) async throws
    /// Starts a task that nobody's cancellation reaches but that of the handle.
    @discardableResult
    func start(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never>
    /// 64 random bits.
    func random() -> UInt64
}

extension Scheduler {
    /// Waits that long, whether or not the calling task is cancelled.
    package func sleepUncancelled(for duration: Duration) async {
        await start {
            // Nobody holds this task, so nobody cancels it.
            do { try await sleep(for: duration) } catch {}
        }.value
    }
}

/// The system's clock, chance and tasks.
package struct SystemScheduler: Scheduler {
    package init() {}

    package var now: ContinuousClock.Instant { .now }
    package var timestamp: Timestamp { .now }
    package func sleep(for duration: Duration) async throws { try await Task.sleep(for: duration) }
    package func start(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> { Task { await body() } }
    package func random() -> UInt64 { UInt64.random(in: .min ... .max) }
}

/// A scheduler's chance, for what wants a generator.
package struct SchedulerRandomness: RandomNumberGenerator {
    private let scheduler: any Scheduler

    package init(_ scheduler: any Scheduler) { self.scheduler = scheduler }

    package func next() -> UInt64 { scheduler.random() }
}

extension Backoff {
    /// The pause before the next try, with that scheduler's chance.
    package mutating func next(on scheduler: any Scheduler) -> Duration {
        var randomness = SchedulerRandomness(scheduler)
        return next(using: &randomness)
    }
}
