/// Taking and keeping a unique key: one open job under it at a time.
///
/// The key is busy while its job has not ended, or has no record yet and took the key less than a minute ago: its
/// submitter stands between the two. Then it is taken over by compare and set, so that of several that see the end
/// only one gets it.
struct UniqueKeyHold: Sendable {
    let key: SHA256Digest
    let keys: any SubmissionKeyStore
    let submission: Submission
    let options: SubmitOptions

    /// How long a submitter may take between the key and the record.
    private static let patience: Duration = .seconds(60)

    /// Takes the key.
    ///
    /// With `replacesHolder` the open job under it is cancelled first. One that runs is waited for until it has ended,
    /// so that never two run at a time; the deadline bounds that.
    /// - Returns: false where the job had it already.
    /// - Throws: `SubmitError.held`.
    func take(for id: JobID, until deadline: Deadline) async throws(SubmitError) -> Bool {
        var ended: JobID?
        while true {
            let (holder, age): (JobID, Duration)
            switch try await hold(for: id, after: ended, until: deadline) {
            case .held: return true
            case .kept: return false
            case .busy(let other, let since): (holder, age) = (other, since)
            }
            if try await hasEnded(holder, age, deadline) {
                ended = holder
                continue
            }
            guard options.replacesHolder else { throw busy(holder, "is open") }
            try await end(holder, until: deadline)
            ended = holder
        }
    }

    /// Looks whether the key is still that job's.
    /// - Throws: `SubmitError.held`.
    func confirm(for id: JobID, until deadline: Deadline) async throws(SubmitError) {
        if case .busy(let holder, _) = try await hold(for: id, after: nil, until: deadline) {
            throw busy(holder, "took it meanwhile")
        }
    }

    /// Gives the key back, if it is still that job's.
    func letGo(by id: JobID, _ deadline: Deadline) async {
        // Otherwise it runs out by itself.
        _ = await deadline.call { try await keys.letGo(key, by: id) }
    }

    private func hold(
        for id: JobID, after ended: JobID?, until deadline: Deadline
    ) async throws(SubmitError) -> HoldReply {
        try await deadline.ask { [keys, key] _ in try await keys.hold(key, for: id, after: ended) }
    }

    private func hasEnded(_ holder: JobID, _ age: Duration, _ deadline: Deadline) async throws(SubmitError) -> Bool {
        let now = submission.scheduler.timestamp
        let record = try await deadline.ask { [store = submission.store] _ in
            guard let record = try await store.record(holder) else { return JobRecord?.none }
            guard record.isOver(at: now) else { return record }
            // Whoever sees first that a job's time is over ends it.
            try await store.expire(holder)
            return try await store.record(holder)
        }
        return record.map(\.state.isTerminal) ?? (age >= Self.patience)
    }

    /// Cancels the holder and waits for its end.
    private func end(_ holder: JobID, until deadline: Deadline) async throws(SubmitError) {
        let by = options.replacedBy
        let reply = try await deadline.ask { [store = submission.store] _ in try await store.cancel(holder, by: by) }
        // Without a record it is flagged: should it still come, it ends before it begins.
        guard reply == .flagged else { return }
        var backoff = Backoff(first: .milliseconds(50), limit: .milliseconds(500))
        while await deadline.pause(&backoff) {
            if try await hasEnded(holder, .zero, deadline) { return }
        }
        throw busy(holder, "was told to end, but still runs; try again")
    }

    private func busy(_ holder: JobID, _ what: String) -> SubmitError {
        .held(by: holder, "the unique key is busy: job \(holder) \(what)")
    }
}

extension JobRecord {
    /// Whether it waits although its time is over.
    fileprivate func isOver(at now: Timestamp) -> Bool {
        guard let expiresAt, state == .queued || state == .retrying else { return false }
        return expiresAt <= now
    }
}
