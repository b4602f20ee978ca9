import Foundation
package import GenShared
import Synchronization

/// Virtual time: when no task has anything left to do, the clock jumps to the next moment that one waits for.
///
/// Everything that a run starts stays on one thread, in one order, so that minutes pass in no time and a run is the
/// same each time.
package final class ManualScheduler: Scheduler, TaskExecutor {
    private struct Sleeper {
        let due: Duration
        let continuation: CheckedContinuation<Void, any Error>
    }

    private struct State {
        var jobs: [UnownedJob] = []
        var elapsed: Duration = .zero
        var sleepers: [UInt64: Sleeper] = [:]
        var cancelled: Set<UInt64> = []
        var lastSleeper: UInt64 = 0
        var generator: SeededGenerator
    }

    private let state: Mutex<State>
    private let start = ContinuousClock.now
    private static let startOfDay = Timestamp(milliseconds: 1_796_092_180_000)

    package init(seed: UInt64 = 1) {
        state = Mutex(State(generator: SeededGenerator(seed: seed)))
    }

    /// The time that has passed.
    package var elapsed: Duration { state.withLock { $0.elapsed } }

    /// Runs the body to its end in virtual time.
    package func run<Value: Sendable>(_ body: @escaping @Sendable () async -> Value) async -> Value {
        let result = Mutex<Value?>(nil)
        let box = Box(result: result)
        Task(executorPreference: self) { [box] in
            let value = await body()
            box.result.withLock { $0 = value }
        }
        return await withCheckedContinuation { continuation in
            // A thread of its own, since this one loops until the body is done.
            Thread.detachNewThread { [self] in
                while true {
                    if let value = box.result.withLock({ $0 }) { return continuation.resume(returning: value) }
                    guard step() else { fatalError("everything waits for something that never comes") }
                }
            }
        }
    }

    private final class Box<Value: Sendable>: Sendable {
        let result: Mutex<Value?>
        init(result: consuming sending Mutex<Value?>) { self.result = result }
    }

    /// Does the next thing.
    /// - Returns: false when there is none.
    private func step() -> Bool {
        if let job = state.withLock({ $0.jobs.isEmpty ? nil : $0.jobs.removeFirst() }) {
            job.runSynchronously(on: asUnownedTaskExecutor())
            return true
        }
        let sleeper: Sleeper? = state.withLock { state in
            // Of several that wake at one moment, the one that slept first.
            guard let next = state.sleepers.min(by: { ($0.value.due, $0.key) < ($1.value.due, $1.key) }) else {
                return nil
            }
            state.elapsed = max(state.elapsed, next.value.due)
            return state.sleepers.removeValue(forKey: next.key)
        }
        sleeper?.continuation.resume()
        return sleeper != nil
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.jobs.append(job) }
    }

    // MARK: The port

    package var now: ContinuousClock.Instant { start + elapsed }
    package var timestamp: Timestamp {
        Timestamp(milliseconds: Self.startOfDay.milliseconds + Int64(elapsed.milliseconds))
    }
    package func random() -> UInt64 { state.withLock { $0.generator.next() } }

    @discardableResult
    package func start(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        Task(executorPreference: self) { await body() }
    }

    package func sleep(for duration: Duration) async throws {
        let number = state.withLock { state in
            state.lastSleeper += 1
            return state.lastSleeper
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isCancelled = state.withLock { state in
                    if state.cancelled.remove(number) != nil { return true }
                    state.sleepers[number] = Sleeper(due: state.elapsed + duration, continuation: continuation)
                    return false
                }
                if isCancelled { continuation.resume(throwing: CancellationError()) }
            }
        } onCancel: {
            let sleeper = state.withLock { state in
                let sleeper = state.sleepers.removeValue(forKey: number)
                if sleeper == nil { state.cancelled.insert(number) }
                return sleeper
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}
