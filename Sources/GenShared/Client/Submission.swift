/// One submission's decisions: make the record, publish the message, judge the answers, all within a deadline.
///
/// Knows ports only, so that it can be run in simulated time on simulated servers.
package struct Submission: Sendable {
    let store: any SubmissionStore
    let publisher: any JobPublisher
    let scheduler: any Scheduler
    let limits: JobLimits
    private let alarm: Alarm

    /// How much longer than the deadline the publisher is waited for: it keeps the deadline itself, and what it says
    /// then, such as "nothing was sent", is worth more than "unknown".
    private static let publisherGrace: Duration = .milliseconds(500)
    /// How long after the deadline the last calls to the store may end: a broker that is away has used up all of it,
    /// and its grace, and the record should not say `queued` for that.
    static let storeGrace: Duration = publisherGrace + .seconds(1)

    /// - Parameter alarm: watches over the deadlines of many submissions; without one this has its own.
    package init(
        store: any SubmissionStore, publisher: any JobPublisher, scheduler: any Scheduler,
        limits: JobLimits = JobLimits(), alarm: Alarm? = nil
    ) {
        self.store = store
        self.publisher = publisher
        self.scheduler = scheduler
        self.limits = limits
        self.alarm = alarm ?? Alarm(on: scheduler)
    }

    /// Hands a job in.
    /// - Returns: the id of the accepted job.
    /// - Throws: `SubmitError`.
    @discardableResult
    package func submit(_ job: Job, deadline: Duration) async throws(SubmitError) -> JobID {
        let job = try checked(job)
        return try await within(deadline) { deadline throws(SubmitError) in
            try await submit(job, until: deadline)
        }
    }

    /// Does a submission's work within a deadline, whatever its servers do.
    func within(
        _ limit: Duration, _ work: @escaping @Sendable (Deadline) async throws(SubmitError) -> JobID
    ) async throws(SubmitError) -> JobID {
        let deadline = Deadline(in: limit, on: scheduler)
        return try await deadline.run(on: alarm) { () throws(SubmitError) in try await work(deadline) }.get()
    }

    private func submit(_ job: Job, until deadline: Deadline) async throws(SubmitError) -> JobID {
        let prepared: Prepared
        switch try await makeRecord(job, until: deadline) {
        case .prepared(let made): prepared = made
        case .ended(.failed): throw taken(job, .failed)
        case .ended: return job.id
        }
        switch await publish(prepared, until: deadline) {
        case .accepted: return job.id
        case .unknown(let reason): throw .unknown(job.id, reason)
        case .refused(let error):
            deadline.stand(at: .failure(error), grace: Self.storeGrace)
            // The record has the last word: another submission of the same job may have been taken meanwhile.
            if await reject(prepared.message, error, deadline) == .taken { return job.id }
            throw error
        }
    }

    /// The job with a time of creation, if a worker would take it: what it would refuse is refused here, by the same
    /// rules.
    func checked(_ job: Job) throws(SubmitError) -> Job {
        var job = job
        if job.createdAt == nil { job.createdAt = scheduler.timestamp }
        do { _ = try Job(body: job.body, limits: limits) } catch { throw SubmitError.invalid(error) }
        return job
    }

    // MARK: The record

    /// A message whose record is there.
    struct Prepared: Sendable {
        /// The job's own message, or that of an earlier submission of the same job under the same id.
        var message: JobMessage
        /// Whether this submission has made the record; otherwise an earlier one may have been accepted.
        var isOurs: Bool
    }

    /// What there is of a job's record.
    enum Record: Sendable {
        case prepared(Prepared)
        /// An earlier submission's job has ended already.
        case ended(JobState)
    }

    /// Makes the job's record.
    /// - Throws: `SubmitError`; `rejected` where the id is another job's.
    func makeRecord(_ job: Job, until deadline: Deadline) async throws(SubmitError) -> Record {
        let body = job.body
        let (reply, number) = try await deadline.ask { [store] number in
            (try await store.create(job, body: body), number)
        }
        guard case .exists(let state, let isSameBody) = reply else {
            return .prepared(Prepared(message: job.message(body), isOurs: true))
        }
        var stored = isSameBody ? body : nil
        if stored == nil { stored = try await repeated(job, until: deadline) }
        guard let stored else { throw taken(job, state) }
        guard !state.isTerminal else { return .ended(state) }
        // What a first try made whose answer was lost is ours: the body has its time of creation.
        let isOurs = isSameBody && number > 1 && state == .queued
        return .prepared(Prepared(message: job.message(stored), isOurs: isOurs))
    }

    func taken(_ job: Job, _ state: JobState) -> SubmitError {
        .rejected("a job with the id \(job.id) exists: it is \(state.rawValue)")
    }

    /// The stored body, if it is this job but for its times of creation and expiry, as when a submission of unknown
    /// outcome is repeated: both are counted from the moment of submitting.
    private func repeated(_ job: Job, until deadline: Deadline) async throws(SubmitError) -> [UInt8]? {
        guard let stored = try await deadline.ask({ [store] _ in try await store.message(job.id) }) else { return nil }
        // What another client stored need not be readable: then it is not this job.
        guard var earlier = try? Job(body: stored, limits: limits) else { return nil }
        (earlier.createdAt, earlier.expiresAt) = (job.createdAt, job.expiresAt)
        return earlier == job ? stored : nil
    }

    /// How the record of a refused submission ended.
    enum Rejection: Sendable {
        /// Nobody will run it.
        case ended
        /// It runs, or has run.
        case taken
        /// The store did not answer: the record stays `queued`.
        case unknown
    }

    /// Ends the record of a job that was not accepted.
    func reject(_ message: JobMessage, _ error: SubmitError, _ deadline: Deadline) async -> Rejection {
        let failure = JobFailure(.rejected, error.description)
        let rejected = RejectedMessage(body: message.body, kind: message.kind, pool: message.pool, lane: message.lane)
        let answer = await deadline.call {
            try await store.reject(message.id, failure: failure, rejected: rejected)
        }
        switch answer {
        case .success(.completed?), .success(nil): return .taken
        case .success: return .ended
        case .failure, nil: return .unknown
        }
    }

    // MARK: The message

    /// How publishing ended.
    enum Ending: Sendable {
        case accepted
        /// Nothing that was sent, now or by an earlier submission, can have been taken.
        case refused(SubmitError)
        /// Something may have been taken.
        case unknown(String)
    }

    /// Publishes until the broker has it, refuses it, or the time is over.
    func publish(_ prepared: Prepared, until deadline: Deadline) async -> Ending {
        // Not before: whoever is told that nothing was accepted must be able to rely on it.
        guard deadline.stand(at: .failure(.unknown(prepared.message.id, Self.silence)), grace: Self.publisherGrace)
        else { return .unknown(Self.silence) }
        var backoff = Backoff.submission
        // Once a message may have been taken, "nothing was accepted" can no longer be said.
        var isDoubtful = !prepared.isOurs
        while true {
            let failure: String
            var isFinal = false
            switch await attempt(prepared.message, until: deadline) {
            case .success(.confirmed): return .accepted
            case .success(.returned(let reason)):
                return await ending(.rejected(prepared.message.unroutable(reason)), isDoubtful, prepared, deadline)
            case .success(.nacked):
                return await ending(.rejected(prepared.message.full), isDoubtful, prepared, deadline)
            case .success(.notSent(let reason)): failure = reason
            case .success(.unknown(let reason)):
                failure = reason
                isDoubtful = true
            case .failure(let error):
                failure = error.message
                isFinal = error.isFinal
            }
            if !isFinal, await deadline.pause(&backoff) { continue }
            return await ending(.unreachable(failure), isDoubtful, prepared, deadline)
        }
    }

    func attempt(
        _ message: JobMessage, until deadline: Deadline
    ) async -> Result<PublishOutcome, PublisherError> {
        let limit = max(.milliseconds(1), deadline.left)
        let answer = await deadline.call {
            do throws(PublisherError) {
                return Result<PublishOutcome, PublisherError>.success(
                    try await publisher.publish(message, within: limit))
            } catch { return .failure(error) }
        }
        // The call above throws nothing; without an answer the time is over, and the submission's answer is told.
        guard case .success(let outcome) = answer else { return .success(.unknown(Self.silence)) }
        return outcome
    }

    private static let silence = "RabbitMQ did not answer in time"

    private func ending(
        _ error: SubmitError, _ isDoubtful: Bool, _ prepared: Prepared, _ deadline: Deadline
    ) async -> Ending {
        guard isDoubtful else { return .refused(error) }
        // A worker that has begun it tells more than the lost confirm.
        let id = prepared.message.id
        deadline.stand(at: .failure(.unknown(id, error.description)), grace: Self.storeGrace)
        let record = await deadline.call { try await store.record(id) }
        if case .success(let record?) = record, record.attempt > 0 { return .accepted }
        let earlier = prepared.isOurs ? "" : "; an earlier submission of it may have been accepted"
        return .unknown(error.description + earlier)
    }
}

extension Job {
    func message(_ body: [UInt8]) -> JobMessage {
        JobMessage(id: id, kind: kind.rawValue, pool: pool, lane: lane, body: body)
    }
}

extension JobMessage {
    fileprivate func unroutable(_ reason: String) -> String {
        "no queue takes jobs of pool \"\(pool)\", lane \(lane.rawValue) (\(reason)); "
            + "run `gendispatcher setup --pool \(pool)` or start a worker that serves it"
    }

    fileprivate var full: String { "the queue of pool \"\(pool)\", lane \(lane.rawValue), is full" }
}
