import Synchronization

/// A moment by which something must be answered, on a scheduler's clock.
package struct Deadline: Sendable {
    private let end: ContinuousClock.Instant
    private let scheduler: any Scheduler

    package init(in limit: Duration, on scheduler: any Scheduler) {
        end = scheduler.now + limit
        self.scheduler = scheduler
    }

    /// How long there still is; never below zero.
    var left: Duration { max(.zero, end - scheduler.now) }

    /// Waits before the next try.
    /// - Returns: false where the pause would end too late, or the task was cancelled.
    func pause(_ backoff: inout Backoff) async -> Bool {
        let next = backoff.next(on: scheduler)
        guard next < left else { return false }
        do { try await scheduler.sleep(for: next) } catch { return false }
        return true
    }

    /// Waits for a call, but no longer than the deadline and that grace.
    ///
    /// A call that is late runs on, and nobody hears its answer.
    /// - Returns: the answer; `nil` where it was late.
    package func race<Value: Sendable>(
        grace: Duration = .zero, _ call: @escaping @Sendable () async throws -> Value
    ) async -> Result<Value, any Error>? {
        let finish = Finish<Result<Value, any Error>?>()
        // Tasks of their own: a server's answer cannot be waited for less by cancelling, so a group would wait, too.
        scheduler.start {
            do { finish.tell(.success(try await call())) } catch { finish.tell(.failure(error)) }
        }
        let timer = scheduler.start { [limit = left + grace, scheduler] in
            do { try await scheduler.sleep(for: limit) } catch { return }  // Cancelled: the answer came first.
            finish.tell(nil)
        }
        let result = await finish.value()
        timer.cancel()
        return result
    }

    /// Within this a call of a store or a publisher ends by itself: Redis has 2 s to accept a connection and 5 s to
    /// answer, and a publisher keeps the limit that it is given.
    private static let callLimit: Duration = .seconds(8)

    /// As `race`, for a call of a store or a publisher: one that ends in time by itself is simply made.
    ///
    /// Two tasks and a timer for each call would double what a submission costs.
    func call<Value: Sendable>(
        grace: Duration = .zero, _ call: @escaping @Sendable () async throws -> Value
    ) async -> Result<Value, any Error>? {
        guard left > Self.callLimit else { return await race(grace: grace, call) }
        do { return .success(try await call()) } catch { return .failure(error) }
    }

    /// Asks the store until it answers, refuses for good, or the time is over.
    /// - Parameter call: is told which try it is, from 1.
    /// - Throws: `SubmitError.unreachable`.
    func ask<Value: Sendable>(
        _ call: @escaping @Sendable (_ number: Int) async throws -> Value
    ) async throws(SubmitError) -> Value {
        var backoff = Backoff.submission
        var number = 0
        while true {
            number += 1
            switch await self.call({ [number] in try await call(number) }) {
            case .success(let value): return value
            case nil: throw SubmitError.unreachable("the store of jobs did not answer within the deadline")
            case .failure(let error):
                let mayRetry = (error as? StoreError)?.isRetryable ?? false
                guard mayRetry, await pause(&backoff) else { throw SubmitError.unreachable("\(error)") }
            }
        }
    }
}

extension Backoff {
    /// Between the tries of one submission.
    static var submission: Backoff { Backoff(first: .milliseconds(100), limit: .seconds(1)) }
}

/// The first of several answers, for the one that waits for it.
private final class Finish<Value: Sendable>: Sendable {
    private enum State {
        case open
        case waiting(CheckedContinuation<Value, Never>)
        case told(Value)
        case done
    }

    private let state = Mutex(State.open)

    func tell(_ value: Value) {
        let waiter: CheckedContinuation<Value, Never>? = state.withLock { state in
            switch state {
            case .open: state = .told(value)
            case .waiting(let continuation):
                state = .done
                return continuation
            case .told, .done: break
            }
            return nil
        }
        waiter?.resume(returning: value)
    }

    func value() async -> Value {
        await withCheckedContinuation { continuation in
            let value: Value? = state.withLock { state in
                if case .told(let value) = state {
                    state = .done
                    return value
                }
                state = .waiting(continuation)
                return nil
            }
            if let value { continuation.resume(returning: value) }
        }
    }
}
