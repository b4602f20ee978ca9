extension Client {
    /// Submits a job: makes its record, publishes its message, and waits for RabbitMQ's confirm.
    ///
    /// When it returns, a majority of RabbitMQ's nodes has the job on disk. Cancelling the task does not take back
    /// what was sent.
    /// - Parameters:
    ///   - job: the job; without a time of creation it gets the present one.
    ///   - deadline: how long accepting may take, retries included.
    /// - Returns: the id of the accepted job.
    /// - Throws: `SubmitError`.
    @discardableResult
    public func submit(_ job: Job, deadline: Duration = .seconds(10)) async throws(SubmitError) -> JobID {
        let submission = Submission(
            store: store, publisher: publisher, scheduler: SystemScheduler(), limits: limits)
        return try await submission.submit(job, deadline: deadline)
    }
}
