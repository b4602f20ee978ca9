import GenShared
import Synchronization

/// Leases that could not be given back, since the store was away: by job, the owner that held them.
///
/// When such a job comes again, its claim takes the lease back at no cost. Without that, one outage of Redis would count
/// as a crash for every job that ended meanwhile.
final class UnreturnedLeases: Sendable {
    /// As many as a worker can have slots, several times over; of more the oldest are forgotten, and count as crashes.
    private static let limit = 4096

    private let state = Mutex((owners: [JobID: String](), order: [JobID]()))

    func add(_ id: JobID, owner: String) {
        state.withLock { state in
            if state.owners.updateValue(owner, forKey: id) == nil { state.order.append(id) }
            guard state.order.count > Self.limit else { return }
            state.owners[state.order.removeFirst()] = nil
        }
    }

    func owner(of id: JobID) -> String? { state.withLock { $0.owners[id] } }

    func remove(_ id: JobID) {
        state.withLock { state in
            guard state.owners.removeValue(forKey: id) != nil else { return }
            state.order.removeAll { $0 == id }
        }
    }
}
