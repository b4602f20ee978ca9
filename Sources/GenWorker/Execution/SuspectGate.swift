import Synchronization

/// Lets one suspect job run at a time in this worker.
///
/// A job is suspect when a worker went away while it ran: it may be what killed it. The next suspect waits in a tier,
/// so that one poison job does not take other suspects along, which would then be held to be poison, too.
final class SuspectGate: Sendable {
    private let isTaken = Atomic(false)

    /// - Returns: whether the caller may run one; it must call `leave` at its end.
    func enter() -> Bool { !isTaken.exchange(true, ordering: .acquiringAndReleasing) }

    func leave() { isTaken.store(false, ordering: .releasing) }
}
