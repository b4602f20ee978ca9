/// A submission under an idempotency key, a unique key, or both.
///
/// The order of effects: reserve the idempotency key → take the unique key → make the record → look at the unique key
/// again → publish → note that it was accepted. A refused submission gives its keys back; one of unknown outcome keeps
/// them, so that its repetition finds the same job.
package struct KeyedSubmission: Sendable {
    let submission: Submission
    let keys: any SubmissionKeyStore
    private let idempotency: SHA256Digest?
    private let unique: UniqueKeyHold?

    /// - Throws: `SubmitError` for keys that are too long.
    package init(
        _ submission: Submission, keys: any SubmissionKeyStore, options: SubmitOptions
    ) throws(SubmitError) {
        try options.check()
        self.submission = submission
        self.keys = keys
        idempotency = try options.idempotencyKey.map { key throws(SubmitError) in try Self.digest(Array(key.utf8)) }
        let unique = try options.uniqueKey.map { key throws(SubmitError) in try Self.digest(Array(key.utf8)) }
        self.unique = unique.map { UniqueKeyHold(key: $0, keys: keys, submission: submission, options: options) }
    }

    /// Hands a job in.
    /// - Returns: the id of the accepted job: that of the first submission under the idempotency key.
    /// - Throws: `SubmitError`.
    @discardableResult
    package func submit(_ job: Job, deadline: Duration) async throws(SubmitError) -> JobID {
        let deadline = Deadline(in: deadline, on: submission.scheduler)
        let job = try submission.checked(job)
        guard let idempotency else { return try await handIn(job, isRepeat: false, until: deadline).id }
        let payload = try Self.digest(job.payload)
        while true {
            let reservation = try await deadline.ask { [keys] _ in
                try await keys.reserve(idempotency, for: job.id, payload: payload)
            }
            var current = job
            var wasAccepted = false
            switch reservation {
            case .reserved: break
            case .other(let holder):
                throw .held(by: holder, "the idempotency key belongs to job \(holder), which asks for something else")
            case .same(let id, let isAccepted): (current.id, wasAccepted) = (id, isAccepted)
            }
            if wasAccepted { return await repeatAccepted(current, until: deadline) }
            switch try await handIn(current, isRepeat: current.id != job.id, until: deadline) {
            case .accepted(let id): return id
            case .neverRan(let id):
                // An earlier submission was refused and ended before it could give the key back.
                let isFree = try await deadline.ask { [keys] _ in try await keys.withdraw(idempotency, from: id) }
                guard isFree else { return id }
                guard id != job.id else { throw submission.taken(job, .failed) }
            }
        }
    }

    /// The job is safe already; handing it in again only mends what may have been lost since.
    private func repeatAccepted(_ job: Job, until deadline: Deadline) async -> JobID {
        do throws(SubmitError) {
            if case .prepared(let prepared) = try await submission.makeRecord(job, until: deadline) {
                _ = await submission.attempt(prepared.message, until: deadline)
            }
        } catch {
            // Whatever is wrong now, the earlier submission's answer stands.
        }
        return job.id
    }

    private enum HandedIn {
        case accepted(JobID)
        /// The job's record says that an earlier submission was refused.
        case neverRan(JobID)

        var id: JobID {
            switch self {
            case .accepted(let id), .neverRan(let id): id
            }
        }
    }

    private func handIn(
        _ job: Job, isRepeat: Bool, until deadline: Deadline
    ) async throws(SubmitError) -> HandedIn {
        // A repetition of a job that is there has no need of the unique key: its job has it, or had it.
        var needsUnique = unique != nil
        if needsUnique, isRepeat { needsUnique = try await isMissing(job.id, deadline) }
        if needsUnique, let unique {
            do { try await unique.take(for: job.id, until: deadline) } catch {
                await giveBack(job.id, deadline)
                throw error
            }
        }
        let record: Submission.Record
        do { record = try await submission.makeRecord(job, until: deadline) } catch {
            // Nothing was sent: the keys need not stay. One of a repetition is not ours to give.
            if !isRepeat { await giveBack(job.id, deadline) }
            throw error
        }
        switch record {
        case .ended(.failed): return try await verdict(onFailed: job, isRepeat: isRepeat, until: deadline)
        case .ended: return .accepted(job.id)
        case .prepared(let prepared):
            if needsUnique, let unique { try await keep(unique, prepared, until: deadline) }
            return .accepted(try await publish(prepared, until: deadline))
        }
    }

    private func isMissing(_ id: JobID, _ deadline: Deadline) async throws(SubmitError) -> Bool {
        try await deadline.ask { [submission] _ in try await submission.store.record(id) == nil }
    }

    /// Whether a job that failed was one that ran, which answers a repetition, or one that was refused.
    private func verdict(
        onFailed job: Job, isRepeat: Bool, until deadline: Deadline
    ) async throws(SubmitError) -> HandedIn {
        guard idempotency != nil else { throw submission.taken(job, .failed) }
        let record = try await deadline.ask { [submission] _ in try await submission.store.record(job.id) }
        if let record, record.attempt == 0, case .failed(let failure, _)? = record.ending, failure.code == .rejected {
            return .neverRan(job.id)
        }
        return .accepted(job.id)
    }

    /// Looks at the unique key once more, now that the record is there and keeps others from taking it over: between
    /// the two, a submitter that was very slow may have lost it.
    private func keep(
        _ unique: UniqueKeyHold, _ prepared: Submission.Prepared, until deadline: Deadline
    ) async throws(SubmitError) {
        do { try await unique.confirm(for: prepared.message.id, until: deadline) } catch {
            guard prepared.isOurs else { throw error }
            _ = await submission.reject(prepared.message, error, deadline)
            await giveBack(prepared.message.id, deadline)
            throw error
        }
    }

    private func publish(
        _ prepared: Submission.Prepared, until deadline: Deadline
    ) async throws(SubmitError) -> JobID {
        let id = prepared.message.id
        switch await submission.publish(prepared, until: deadline) {
        case .unknown(let reason): throw .unknown(id, reason)
        case .accepted:
            if let idempotency { try await noteAccepted(idempotency, prepared, deadline) }
            return id
        case .refused(let error):
            // First the key, so that a submission of the same job that is accepted at this moment learns of it.
            if await !giveBack(id, deadline) { return id }
            if await submission.reject(prepared.message, error, deadline) == .taken { return id }
            throw error
        }
    }

    /// Notes that the job was accepted.
    ///
    /// Where a refused submission of the same job has taken the key away, it also ends
    /// the record: then nobody may be told that the job was accepted, unless it runs after all.
    private func noteAccepted(
        _ key: SHA256Digest, _ prepared: Submission.Prepared, _ deadline: Deadline
    ) async throws(SubmitError) {
        let id = prepared.message.id
        let noted = await deadline.call(grace: Submission.storeGrace) { [keys] in try await keys.accept(key, by: id) }
        // Redis is away: RabbitMQ has the job, and that is what counts.
        guard case .success(false) = noted else { return }
        let error = SubmitError.rejected("job \(id) was refused to another submission under its key; submit it again")
        switch await submission.reject(prepared.message, error, deadline) {
        case .taken: return
        case .ended: throw error
        case .unknown: throw .unknown(id, "another submission of it was refused")
        }
    }

    /// Gives the keys of a refused submission back.
    /// - Returns: false where another submission of the same job was accepted.
    @discardableResult
    private func giveBack(_ id: JobID, _ deadline: Deadline) async -> Bool {
        if let idempotency {
            let isFree = await deadline.call(grace: Submission.storeGrace) { [keys] in
                try await keys.withdraw(idempotency, from: id)
            }
            if case .success(false) = isFree { return false }
        }
        if let unique {
            // It runs out by itself, and its job's record says that it has ended.
            _ = await deadline.call(grace: Submission.storeGrace) { [keys] in
                try await keys.letGo(unique.key, by: id)
            }
        }
        return true
    }

    private static func digest(_ bytes: [UInt8]) throws(SubmitError) -> SHA256Digest {
        do { return try SHA256Digest(of: bytes) } catch { throw .rejected(error.description) }
    }
}

extension Job {
    /// What the job asks for, as bytes: the message without what differs between repetitions of a submission.
    ///
    /// A time of expiry is counted from the moment of submitting, so it does, too.
    fileprivate var payload: [UInt8] {
        var copy = self
        (copy.createdAt, copy.expiresAt) = (nil, nil)
        var zeros = ZeroGenerator()
        copy.id = JobID(atMilliseconds: 0, using: &zeros)
        return copy.body
    }
}

/// For an id that means no job and is stored nowhere.
private struct ZeroGenerator: RandomNumberGenerator {
    func next() -> UInt64 { 0 }
}
