extension Client {
    /// Submits a job: makes its record, publishes its message, and waits for RabbitMQ's confirm.
    ///
    /// When it returns, a majority of RabbitMQ's nodes has the job on disk. Cancelling the task does not take back
    /// what was sent, and ends no call that is under way: the deadline does, with a grace of 1.5 s for finding out what
    /// became of the job.
    /// - Parameters:
    ///   - job: the job; without a time of creation it gets the present one.
    ///   - options: the keys under which it is handed in.
    ///   - deadline: how long accepting may take, retries and waiting for a replaced job included.
    /// - Returns: the id of the accepted job: with an idempotency key, that of the first submission under it.
    /// - Throws: `SubmitError`.
    @discardableResult
    public func submit(
        _ job: Job, options: SubmitOptions = SubmitOptions(), deadline: Duration = .seconds(10)
    ) async throws(SubmitError) -> JobID {
        let submission = Submission(
            store: store, publisher: jobPublisher, scheduler: SystemScheduler(), limits: limits,
            alarm: Self.alarm)
        guard options.idempotencyKey != nil || options.uniqueKey != nil else {
            return try await submission.submit(job, deadline: deadline)
        }
        return try await KeyedSubmission(submission, keys: store, options: options).submit(job, deadline: deadline)
    }

    /// Of all clients of the process: most of its time it sleeps.
    private static let alarm = Alarm(on: SystemScheduler())
}
