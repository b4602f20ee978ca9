/// One submission's idempotency key, and the digest of what it asks for.
struct IdempotencyKeyHold: Sendable {
    let key: SHA256Digest
    let payload: SHA256Digest
    let keys: any SubmissionKeyStore

    func reserve(for id: JobID, until deadline: Deadline) async throws(SubmitError) -> Reservation {
        try await deadline.ask { _ in try await keys.reserve(key, for: id, payload: payload) }
    }

    /// Takes the key away from a job that an earlier submission was refused.
    /// - Returns: false where another submission of it was accepted.
    func takeAway(from id: JobID, until deadline: Deadline) async throws(SubmitError) -> Bool {
        try await deadline.ask { _ in try await keys.withdraw(key, from: id) }
    }

    /// Notes that the job was accepted.
    /// - Returns: false where a refused submission of the job has given the key back already.
    func accept(_ id: JobID, _ deadline: Deadline) async -> Bool {
        // Where Redis is away: RabbitMQ has the job, and that is what counts.
        guard case .success(false) = await deadline.call({ try await keys.accept(key, by: id) }) else { return true }
        return false
    }

    /// Gives the key of a refused submission back.
    /// - Returns: false where another submission of the same job was accepted: the key stays.
    func giveBack(from id: JobID, _ deadline: Deadline) async -> Bool {
        guard case .success(false) = await deadline.call({ try await keys.withdraw(key, from: id) }) else {
            return true
        }
        return false
    }

    /// Takes the key again for a job that runs after all, although a refused submission of it has given the key back.
    ///
    /// Without it the next repetition would make a second job.
    func restore(for id: JobID, _ deadline: Deadline) async {
        let found = await deadline.call { try await keys.reserve(key, for: id, payload: payload) }
        // Another job has taken it in between: then there are two, which nothing mends.
        if case .success(.other) = found { return }
        _ = await accept(id, deadline)
    }
}
