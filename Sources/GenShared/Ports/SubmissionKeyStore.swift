/// The keys under which submitters hand in jobs: "the same again" and "one at a time".
///
/// Every call may be repeated by the same submission.
package protocol SubmissionKeyStore: Sendable {
    /// Takes an idempotency key for a job, unless one has it.
    /// - Parameter payload: the digest of what the job asks for.
    /// - Throws: `StoreError`.
    func reserve(_ key: SHA256Digest, for id: JobID, payload: SHA256Digest) async throws -> Reservation
    /// Notes that the job of an idempotency key was accepted: now no refused repeat takes the key away.
    /// - Returns: false where a refused submission of the job has taken it away already.
    /// - Throws: `StoreError`.
    func accept(_ key: SHA256Digest, by id: JobID) async throws -> Bool
    /// Takes an idempotency key away from a job that was refused.
    /// - Returns: false where another submission of it was accepted: the key stays.
    /// - Throws: `StoreError`.
    func withdraw(_ key: SHA256Digest, from id: JobID) async throws -> Bool
    /// Takes a unique key for a job where it is free, the job's own, or held by that other one.
    /// - Throws: `StoreError`.
    func hold(_ key: SHA256Digest, for id: JobID, after holder: JobID?) async throws -> HoldReply
    /// Gives a unique key back, if it is still that job's.
    /// - Throws: `StoreError`.
    func letGo(_ key: SHA256Digest, by id: JobID) async throws
}

/// What a reservation found.
package enum Reservation: Sendable, Equatable {
    /// The key is this job's now.
    case reserved
    /// It is that job's, which asks for the same.
    case same(JobID, isAccepted: Bool)
    /// It is that job's, which asks for something else.
    case other(JobID)
}

/// What taking a unique key found.
package enum HoldReply: Sendable, Equatable {
    /// The key is this job's now.
    case held
    /// It was this job's before.
    case kept
    /// Another job took it that long ago.
    case busy(JobID, age: Duration)
}
