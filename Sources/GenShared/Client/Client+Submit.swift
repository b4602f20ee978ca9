extension Client {
    /// Submits a job: makes its record, publishes its message, and waits for RabbitMQ's confirm.
    ///
    /// When it returns, a majority of RabbitMQ's nodes has the job on disk. Cancelling the task does not take back
    /// what was sent.
    /// - Parameters:
    ///   - job: the job; without a time of creation it gets the present one.
    ///   - deadline: how long accepting may take, retries included.
    /// - Throws: `SubmitError`.
    public func submit(_ job: Job, deadline: Duration = .seconds(10)) async throws(SubmitError) {
        var job = job
        if job.createdAt == nil { job.createdAt = .now }
        let body = job.body
        // What the worker would refuse is refused here, by the same rules.
        do { _ = try Job(body: body, limits: limits) } catch { throw SubmitError.invalid(error) }
        let end = ContinuousClock.now + deadline
        guard let accepted = try await makeRecord(job, body, until: end) else { return }
        try await publish(job, accepted, until: end)
    }

    /// - Returns: the body to publish: the job's own, or the one of an earlier submission of the same job under the
    ///   same id; `nil` where that one has ended already.
    private func makeRecord(
        _ job: Job, _ body: [UInt8], until end: ContinuousClock.Instant
    ) async throws(SubmitError) -> [UInt8]? {
        var backoff = Backoff(first: .milliseconds(100), limit: .seconds(1))
        while true {
            do {
                guard case .exists(let state, let isSameBody) = try await store.create(job, body: body) else {
                    return body
                }
                var stored = isSameBody ? body : nil
                if stored == nil { stored = try await repeated(job) }
                guard let stored, state != .failed else {
                    throw SubmitError.rejected("a job with the id \(job.id) exists: it is \(state.rawValue)")
                }
                return state.isTerminal ? nil : stored
            } catch let error as SubmitError {
                throw error
            } catch {
                let mayRetry = (error as? StoreError)?.isRetryable ?? false
                guard mayRetry, await pause(&backoff, until: end) else { throw SubmitError.unreachable("\(error)") }
            }
        }
    }

    /// The stored body, if it is this job but for its time of creation, as when a submission of unknown outcome is
    /// repeated.
    private func repeated(_ job: Job) async throws -> [UInt8]? {
        guard let stored = try await store.message(job.id) else { return nil }
        // What another client stored need not be readable: then it is not this job.
        guard var earlier = try? Job(body: stored, limits: limits) else { return nil }
        earlier.createdAt = job.createdAt
        return earlier == job ? stored : nil
    }

    private func publish(_ job: Job, _ body: [UInt8], until end: ContinuousClock.Instant) async throws(SubmitError) {
        let message = AMQPMessage(
            exchange: Topology.jobs, routingKey: Topology.routingKey(pool: job.pool, lane: job.lane), body: body,
            messageID: job.id.rawValue, type: job.kind.rawValue)
        var backoff = Backoff(first: .milliseconds(100), limit: .seconds(1))
        // Once a message may have been sent, "nothing was accepted" can no longer be said.
        var uncertainty: String?
        while true {
            let failure: String
            var isFinal = false
            switch await attempt(message, until: end) {
            case .success(.confirmed): return
            case .success(.returned(let reason)):
                throw await givenUp(job, body, .rejected(unroutable(job, reason)), uncertainty)
            case .success(.nacked):
                let reason = "the queue of pool \"\(job.pool)\", lane \(job.lane.rawValue), is full"
                throw await givenUp(job, body, .rejected(reason), uncertainty)
            case .success(.notSent(let reason)): failure = reason
            case .success(.unknown(let reason)):
                failure = reason
                uncertainty = reason
            case .failure(let error):
                failure = error.message
                isFinal = error.code == .unauthorized
            }
            if !isFinal, await pause(&backoff, until: end) { continue }
            throw await givenUp(job, body, .unreachable(failure), uncertainty)
        }
    }

    private func attempt(
        _ message: AMQPMessage, until end: ContinuousClock.Instant
    ) async -> Result<PublishOutcome, AMQPError> {
        do throws(AMQPError) {
            return .success(try await publisher.publish(message, within: max(.milliseconds(1), end - .now)))
        } catch { return .failure(error) }
    }

    private func unroutable(_ job: Job, _ reason: String) -> String {
        "no queue takes jobs of pool \"\(job.pool)\", lane \(job.lane.rawValue) (\(reason)); "
            + "run `gendispatcher setup --pool \(job.pool)` or start a worker that serves it"
    }

    /// Ends the record of a job that was certainly not accepted, and says what to throw.
    private func givenUp(
        _ job: Job, _ body: [UInt8], _ error: SubmitError, _ uncertainty: String?
    ) async -> SubmitError {
        if let uncertainty { return .unknown(job.id, uncertainty) }
        let failure = JobFailure(.rejected, error.description)
        do {
            _ = try await store.reject(
                job.id, failure: failure,
                rejected: RejectedMessage(body: body, kind: job.kind.rawValue, pool: job.pool, lane: job.lane))
        } catch {
            // The record stays `queued` and runs out by itself; the caller learns what matters.
        }
        return error
    }

    private func pause(_ backoff: inout Backoff, until end: ContinuousClock.Instant) async -> Bool {
        let next = backoff.next()
        guard ContinuousClock.now + next < end else { return false }
        do { try await Task.sleep(for: next) } catch { return false }
        return true
    }
}
