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
        let job = try submission.checked(job)
        var hold: IdempotencyKeyHold?
        if let idempotency {
            hold = IdempotencyKeyHold(key: idempotency, payload: try Self.digest(job.payload), keys: keys)
        }
        return try await submission.within(deadline) { [hold] deadline throws(SubmitError) in
            guard let hold else { return try await handIn(job, nil, isRepeat: false, until: deadline).id }
            return try await submit(job, hold, until: deadline)
        }
    }

    private func submit(
        _ job: Job, _ hold: IdempotencyKeyHold, until deadline: Deadline
    ) async throws(SubmitError) -> JobID {
        while true {
            var current = job
            var wasAccepted = false
            switch try await hold.reserve(for: job.id, until: deadline) {
            case .reserved: break
            case .other(let holder):
                throw .held(by: holder, "the idempotency key belongs to job \(holder), which asks for something else")
            case .same(let id, let isAccepted): (current.id, wasAccepted) = (id, isAccepted)
            }
            if wasAccepted { return await repeatAccepted(current, until: deadline) }
            switch try await handIn(current, hold, isRepeat: current.id != job.id, until: deadline) {
            case .accepted(let id): return id
            case .neverRan(let id):
                // An earlier submission was refused and ended before it could give the key back.
                guard try await hold.takeAway(from: id, until: deadline) else { return id }
                guard id != job.id else { throw submission.taken(job, .failed) }
            }
        }
    }

    /// The job is safe already; handing it in again only mends what may have been lost since.
    private func repeatAccepted(_ job: Job, until deadline: Deadline) async -> JobID {
        deadline.stand(at: .success(job.id), grace: .zero)
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
        _ job: Job, _ hold: IdempotencyKeyHold?, isRepeat: Bool, until deadline: Deadline
    ) async throws(SubmitError) -> HandedIn {
        // A repetition of a job that is there has no need of the unique key: its job has it, or had it.
        var needsUnique = unique != nil
        if needsUnique, isRepeat { needsUnique = try await isMissing(job.id, deadline) }
        var taken = Taken(idempotency: hold)
        let record: Submission.Record
        do {
            if needsUnique, let unique, try await unique.take(for: job.id, until: deadline) { taken.unique = unique }
            record = try await submission.makeRecord(job, until: deadline)
        } catch {
            // Nothing was sent: the keys need not stay. That of an earlier submission is not ours to give.
            if isRepeat { taken.idempotency = nil }
            deadline.stand(at: .failure(error), grace: Submission.storeGrace)
            if await taken.idempotency?.giveBack(from: job.id, deadline) != false {
                await taken.unique?.letGo(by: job.id, deadline)
            }
            throw error
        }
        switch record {
        case .ended(.failed): return try await verdict(onFailed: job, hold, until: deadline)
        case .ended: return .accepted(job.id)
        case .prepared(let prepared):
            if needsUnique, let unique { try await keep(unique, taken, prepared, until: deadline) }
            return .accepted(try await publish(prepared, taken, until: deadline))
        }
    }

    /// The keys that are given back if the job is refused.
    private struct Taken: Sendable {
        var idempotency: IdempotencyKeyHold?
        /// Only where this submission took it: that of an open job of the same id stays.
        var unique: UniqueKeyHold?
    }

    private func isMissing(_ id: JobID, _ deadline: Deadline) async throws(SubmitError) -> Bool {
        try await deadline.ask { [submission] _ in try await submission.store.record(id) == nil }
    }

    /// Whether a job that failed was one that ran, which answers a repetition, or one that was refused.
    private func verdict(
        onFailed job: Job, _ hold: IdempotencyKeyHold?, until deadline: Deadline
    ) async throws(SubmitError) -> HandedIn {
        guard hold != nil else { throw submission.taken(job, .failed) }
        let record = try await deadline.ask { [submission] _ in try await submission.store.record(job.id) }
        if let record, record.attempt == 0, case .failed(let failure, _)? = record.ending, failure.code == .rejected {
            return .neverRan(job.id)
        }
        return .accepted(job.id)
    }

    /// Looks at the unique key once more, now that the record is there and keeps others from taking it over: between
    /// the two, a submitter that was very slow may have lost it.
    private func keep(
        _ unique: UniqueKeyHold, _ taken: Taken, _ prepared: Submission.Prepared, until deadline: Deadline
    ) async throws(SubmitError) {
        do { try await unique.confirm(for: prepared.message.id, until: deadline) } catch {
            guard prepared.isOurs else { throw error }
            _ = await refuse(prepared, taken, error, deadline)
            throw error
        }
    }

    private func publish(
        _ prepared: Submission.Prepared, _ taken: Taken, until deadline: Deadline
    ) async throws(SubmitError) -> JobID {
        let id = prepared.message.id
        switch await submission.publish(prepared, until: deadline) {
        case .unknown(let reason): throw .unknown(id, reason)
        case .accepted:
            if let hold = taken.idempotency { try await noteAccepted(hold, prepared, deadline) }
            return id
        case .refused(let error):
            guard await refuse(prepared, taken, error, deadline) else { return id }
            throw error
        }
    }

    /// Ends a refused job and gives its keys back.
    /// - Returns: false where it was accepted after all, by another submission of it.
    private func refuse(
        _ prepared: Submission.Prepared, _ taken: Taken, _ error: SubmitError, _ deadline: Deadline
    ) async -> Bool {
        let id = prepared.message.id
        deadline.stand(at: .failure(error), grace: Submission.storeGrace)
        // First this key, so that a submission of the same job that is accepted at this moment learns of it.
        if let hold = taken.idempotency, await !hold.giveBack(from: id, deadline) { return false }
        if await submission.reject(prepared.message, error, deadline) == .taken {
            deadline.stand(at: .success(id), grace: Submission.storeGrace)
            await taken.idempotency?.restore(for: id, deadline)
            return false
        }
        // Last the other, which an accepted job needs. Where it stays it runs out, and its job's record says "ended".
        await taken.unique?.letGo(by: id, deadline)
        return true
    }

    /// Notes that the job was accepted.
    ///
    /// Where a refused submission of the same job has taken the key away, it also ends
    /// the record: then nobody may be told that the job was accepted, unless it runs after all.
    private func noteAccepted(
        _ hold: IdempotencyKeyHold, _ prepared: Submission.Prepared, _ deadline: Deadline
    ) async throws(SubmitError) {
        let id = prepared.message.id
        deadline.stand(at: .success(id), grace: Submission.storeGrace)
        guard await !hold.accept(id, deadline) else { return }
        let doubt = SubmitError.unknown(id, "another submission of it was refused")
        deadline.stand(at: .failure(doubt), grace: Submission.storeGrace)
        let error = SubmitError.rejected("job \(id) was refused to another submission under its key; submit it again")
        switch await submission.reject(prepared.message, error, deadline) {
        case .taken:
            deadline.stand(at: .success(id), grace: Submission.storeGrace)
            await hold.restore(for: id, deadline)
        case .ended: throw error
        case .unknown: throw doubt
        }
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
