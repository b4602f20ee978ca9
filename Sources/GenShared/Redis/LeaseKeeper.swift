import Synchronization

/// Renews the leases of all jobs that this process runs, from a timer of the Redis thread: jobs that keep the pool
/// busy cannot delay it.
final class LeaseKeeper: Sendable {
    private struct Lease {
        let owner: String
        let listener: @Sendable (AppendReply) -> Void
    }

    private let leases = Mutex<[JobID: Lease]>([:])
    private let connection: RedisConnection
    private let timing: RedisJobStore.LeaseTiming

    init(connection: RedisConnection, timing: RedisJobStore.LeaseTiming) {
        self.connection = connection
        self.timing = timing
    }

    func keep(_ id: JobID, owner: String, listener: @escaping @Sendable (AppendReply) -> Void) {
        leases.withLock { $0[id] = Lease(owner: owner, listener: listener) }
    }

    func drop(_ id: JobID, owner: String) {
        leases.withLock { if $0[id]?.owner == owner { $0[id] = nil } }
    }

    /// Posts one renewal for each lease; they go out in one write.
    func renewAll() {
        for (id, lease) in leases.withLock({ $0 }) {
            let keys = JobKeys(id)
            var command = RedisCommand(script: .renew, keys: [keys.record, keys.events, keys.cancel])
            command.append(keys.channel)
            command.append(lease.owner)
            command.append(timing.length.milliseconds)
            connection.post(command) { result in
                // A renewal that fails is tried again by the next turn of the timer, well before the lease ends.
                if case .success(let reply) = AppendReply.decode(result) { lease.listener(reply) }
            }
        }
    }
}
