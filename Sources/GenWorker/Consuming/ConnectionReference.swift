import GenShared
import Synchronization

/// Lets a connection's listener name the connection that it was made with.
///
/// Weak: the listener is held by it.
final class ConnectionReference: Sendable {
    private struct Weak {
        weak var connection: AMQPConnection?
    }

    private let state = Mutex(Weak())

    var connection: AMQPConnection? { state.withLock { $0.connection } }

    func set(_ connection: AMQPConnection) { state.withLock { $0.connection = connection } }
}
