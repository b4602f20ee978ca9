/// A moment by which something must be answered, on a scheduler's clock.
package struct Deadline: Sendable {
    private let end: ContinuousClock.Instant
    private let scheduler: any Scheduler
    private let standing = Standing()

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

    /// Waits for a call, but no longer than the deadline.
    ///
    /// A call that is late runs on, and nobody hears its answer.
    /// - Returns: the answer; `nil` where it was late.
    package func race<Value: Sendable>(
        _ call: @escaping @Sendable () async throws -> Value
    ) async -> Result<Value, any Error>? {
        let finish = Finish<Result<Value, any Error>?>()
        // Tasks of their own: a server's answer cannot be waited for less by cancelling, so a group would wait, too.
        scheduler.start {
            do { finish.tell(.success(try await call())) } catch { finish.tell(.failure(error)) }
        }
        let timer = scheduler.start { [limit = left, scheduler] in
            do { try await scheduler.sleep(for: limit) } catch { return }  // Cancelled: the answer came first.
            finish.tell(nil)
        }
        let result = await finish.value()
        timer.cancel()
        return result
    }

    /// Runs a submission's work, but no longer than the deadline and the grace of what it stands at.
    ///
    /// Work that is late is left behind: whatever its calls of a server wait for, the answer comes in time. All calls
    /// together cost one task; cancellation reaches the work's pauses only.
    func run(
        on alarm: Alarm, _ work: @escaping @Sendable () async throws(SubmitError) -> JobID
    ) async -> Result<JobID, SubmitError> {
        let finish = Finish<Result<JobID, SubmitError>>()
        let number = alarm.set(at: end) { [end, standing] now in
            let (answer, grace) = standing.end(after: now - end)
            guard let answer else { return end + grace }
            finish.tell(answer)
            return nil
        }
        // A task of its own, as in `race`.
        let task = scheduler.start {
            do throws(SubmitError) { finish.tell(.success(try await work())) } catch { finish.tell(.failure(error)) }
        }
        let result = await withTaskCancellationHandler {
            await finish.value()
        } onCancel: {
            task.cancel()
        }
        alarm.clear(number)
        task.cancel()
        return result
    }

    /// Says what is answered should the time be over before more is known, and how much later that may be.
    /// - Returns: false where the time is over: then what would come next must not be done.
    @discardableResult
    func stand(at answer: Result<JobID, SubmitError>, grace: Duration) -> Bool {
        standing.move(to: answer, grace: grace)
    }

    /// Makes a call of a store or a publisher.
    ///
    /// It is not raced, since `run` races all of them.
    /// - Returns: the answer; `nil` where the time was over before: it was not made then.
    func call<Value: Sendable>(_ call: () async throws -> Value) async -> Result<Value, any Error>? {
        guard !standing.isOver else { return nil }
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
