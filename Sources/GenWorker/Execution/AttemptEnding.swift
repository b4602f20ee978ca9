import GenShared

/// What follows an attempt: the job's end, or its way back to the queue.
struct AttemptEnding: Sendable {
    let execution: JobExecution
    let job: Job
    let claim: Claim
    let owner: String
    let writer: EventWriter

    private var store: any ExecutionStore { execution.services.store }
    private var router: any MessageRouter { execution.services.router }

    func conclude(
        _ outcome: Attempt.Outcome, _ attempt: Attempt, _ stream: any GenerationStream, queuedMilliseconds: Int
    ) async -> Disposition {
        switch outcome {
        case .completed(let reason, let usage, let speed):
            let stats = attempt.stats(queuedMilliseconds: queuedMilliseconds, usage: usage, tokensPerSecond: speed)
            let completion = Completion(result: attempt.result, finishReason: reason, usage: usage, stats: stats)
            if let failure = invalidity(of: attempt.result) { return await fail(failure, usage: usage) }
            return await finish(.completed(completion), usage: usage)
        case .failed(let failure):
            return await fail(failure, usage: stream.partialUsage)
        case .aborted(let reason):
            return await aborted(reason, usage: stream.partialUsage)
        }
    }

    private func aborted(_ reason: AbortReason, usage: Usage?) async -> Disposition {
        switch reason {
        case .cancelled:
            return await finish(.cancelled(by: nil, latencyMilliseconds: nil, partial: usage), usage: usage)
        case .preempted: return await release("preempted", .preemption, usage)
        case .shutdown: return await release("shutdown", .nothing, usage)
        case .fenced:
            // Another owner has the job. The message goes back: whoever gets it learns how the job stands.
            return .requeue
        case .storeLost(let why):
            // Given back under our own token if the store is there again: a lease that runs out counts as a crash.
            let content = JobEvent.Content.retrying(reason: "store_lost", error: nil, delaySeconds: 0)
            if case .ended(let state)? = await give(back: content, .nothing, .zero, usage) {
                return await announce(state)
            }
            return .requeueAndPause(why)
        case .timedOut(let why, let isRetryable):
            return await fail(JobFailure(.timeout, why, isRetryable: isRetryable), usage: usage)
        case .outputTooLarge(let limit):
            let failure = JobFailure(.outputTooLarge, "the answer is longer than \(limit) bytes")
            return await fail(failure, usage: usage)
        }
    }

    /// An empty answer is no result; one that must be JSON has to be.
    private func invalidity(of result: String) -> JobFailure? {
        if result.isEmpty {
            return JobFailure(.badReply, "the model answered nothing that can be shown", isRetryable: true)
        }
        guard job.input.schema != nil else { return nil }
        do {
            _ = try JSONParser.parse(result)
            return nil
        } catch { return JobFailure(.invalidResult, "the result is \(error)", isRetryable: true) }
    }

    /// A failure that may heal goes back for another attempt; one that will not goes to the dead queue, then ends.
    func fail(_ failure: JobFailure, usage: Usage?) async -> Disposition {
        if failure.isRetryable, let seconds = failure.retryAfterSeconds {
            // The backend names the time itself: waiting for it is no failure of the job.
            return await retry(failure, .seconds(seconds), usage, counter: .nothing)
        }
        if failure.isRetryable, let delay = RetryPolicy.delay(afterFailures: claim.failures + 1) {
            return await retry(failure, delay, usage)
        }
        var failure = failure
        if failure.isRetryable {
            failure.message = "\(claim.failures + 1) attempts failed; the last: \(failure.message)"
            failure.isRetryable = false
        }
        guard await router.bury(execution.delivery, reason: failure.code.rawValue, detail: failure.message) else {
            // The dead queue takes no copy: the job is not ended without one.
            let content = JobEvent.Content.retrying(reason: "broker_lost", error: failure, delaySeconds: 0)
            if case .ended(let state)? = await give(back: content, .nothing, .zero, usage) {
                return await announce(state)
            }
            return .requeueAndPause("RabbitMQ takes no copy")
        }
        return await finish(.failed(failure, partial: usage), usage: usage)
    }

    private func retry(
        _ failure: JobFailure, _ delay: Duration, _ usage: Usage?, counter: JobRelease.Counter = .failure
    ) async -> Disposition {
        let reason = counter == .failure ? "failure" : "retry_after"
        let content = JobEvent.Content.retrying(reason: reason, error: failure, delaySeconds: delay / .seconds(1))
        switch await give(back: content, counter, delay, usage) {
        case .released?: break
        case .ended(let state)?: return await announce(state)
        case .behind?, .fenced?: return .requeue
        case nil: return .requeueAndPause("Redis did not take how the attempt ended")
        }
        return await router.retry(execution.delivery, after: delay)
            ? .acknowledge : .requeueAndPause("RabbitMQ takes no copy")
    }

    /// Gives the job back at no cost; the message returns to its queue.
    private func release(_ reason: String, _ counter: JobRelease.Counter, _ usage: Usage?) async -> Disposition {
        let content = JobEvent.Content.retrying(reason: reason, error: nil, delaySeconds: 0)
        if case .ended(let state)? = await give(back: content, counter, .zero, usage) { return await announce(state) }
        return .requeue
    }

    private func give(
        back content: JobEvent.Content, _ counter: JobRelease.Counter, _ delay: Duration, _ usage: Usage?
    ) async -> ReleaseReply? {
        // What was written but not stored belongs to an attempt that does not count: it is not sent any more, nor is
        // what the store has lost since.
        var last = await writer.drain().previous
        var repeats = 0
        while true {
            let release = JobRelease(
                id: job.id, owner: owner, last: last, counter: counter, delay: delay, content: content, usage: usage)
            let reply = await persistently { () async throws -> ReleaseReply in try await store.release(release) }
            guard case .behind(let stored)? = reply, repeats < 3 else { return reply }
            last = stored
            repeats += 1
        }
    }

    private func finish(_ content: JobEvent.Content, usage: Usage?) async -> Disposition {
        var rest = await writer.drain()
        var resends = 0
        while true {
            let ending = JobEnding(
                id: job.id, owner: owner, previous: rest.previous, events: rest.events, content: content, usage: usage)
            switch await persistently({ () async throws -> FinishReply in try await store.finish(ending) }) {
            case .ended(let state)?: return await announce(state)
            case .behind(let last)? where resends < 3:
                resends += 1
                rest = (last, writer.events(after: last))
            case .behind?, .fenced?: return .requeue
            case nil: return .requeueAndPause("Redis did not take how the attempt ended")
            }
        }
    }

    private func announce(_ state: JobState) async -> Disposition {
        let reply: Void? = await persistently {
            try await store.announce(job.id, state: state, kind: job.kind.rawValue, tenant: job.tenant)
        }
        return reply == nil ? .requeueAndPause("Redis did not take how the attempt ended") : .acknowledge
    }

    /// Repeats a call until the store has answered it, at most for a while.
    /// - Returns: `nil` where it refuses, or does not come back.
    private func persistently<Reply>(_ call: () async throws -> Reply) async -> Reply? {
        do {
            return try await StorePatience(scheduler: execution.services.scheduler).answer(
                within: .seconds(30), isWorthRepeating: \.isRetryable, call)
        } catch {
            // The lease may still be ours when the job comes again.
            execution.services.unreturned.add(job.id, owner: owner)
            Log.error("store_refused", ["job": .string(job.id.rawValue), "reason": .string("\(error)")])
            return nil
        }
    }
}
