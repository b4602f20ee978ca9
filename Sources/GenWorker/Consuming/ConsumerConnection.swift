import GenShared
import Synchronization

/// A connection to consume on, from its making to its loss: what is lost stays lost.
protocol ConsumerConnection: AnyObject, Sendable {
    /// Acknowledges a delivery; on a lost connection nothing happens, since the broker delivers again anyway.
    func acknowledge(_ tag: UInt64)
    /// Hands a delivery back; on a lost connection the broker has done so itself.
    func requeue(_ tag: UInt64)
    /// Consumes a queue with at most `prefetch` unacknowledged deliveries.
    /// - Throws: `AMQPError`; the connection is lost then.
    func consume(queue: String, tag: String, prefetch: Int) async throws(AMQPError)
    /// Ends a consumer; deliveries that came before its end stay ours.
    /// - Throws: `AMQPError`; the connection is lost then.
    func cancelConsumer(tag: String) async throws(AMQPError)
    /// Declares what is missing of a topology, or all of it.
    /// - Returns: the names of what was declared.
    /// - Throws: `AMQPError`; the connection is lost then.
    func declare(_ topology: Topology, onlyMissing: Bool) async throws(AMQPError) -> [String]
    /// Writes what was posted and says good-bye.
    func close() async
}

extension AMQPConnection: ConsumerConnection {}

/// Makes connections to consume on.
protocol ConsumerConnector: Sendable {
    /// Connects and logs in.
    /// - Parameter listener: called for deliveries and losses, from any thread; must not block.
    /// - Throws: `AMQPError`.
    func connect(listener: @escaping AMQPConnection.Listener) async throws(AMQPError) -> any ConsumerConnection
}

/// Connects to a real RabbitMQ.
struct AMQPConsumerConnector: ConsumerConnector {
    let url: AMQPURL
    /// Shown by `rabbitmqctl list_connections`.
    let name: String

    /// A network that swallowed a call is noticed by that: work is to be back within 10 s of its healing.
    private static let callLimit: Duration = .seconds(6)

    func connect(listener: @escaping AMQPConnection.Listener) async throws(AMQPError) -> any ConsumerConnection {
        let connection = AMQPConnection(name: "amqp-consume", listener: listener)
        var timeouts = AMQPTimeouts()
        timeouts.call = Self.callLimit
        try await connection.open(url: url, connectionName: name, confirms: false, timeouts: timeouts)
        return connection
    }
}

/// Lets a connection's listener name the connection that it was made for.
///
/// Weak: the listener is held by it. Deliveries come only after `consume`, so after `set`.
final class ConnectionReference: Sendable {
    private struct Weak {
        weak var connection: (any ConsumerConnection)?
    }

    private let state = Mutex(Weak())

    var connection: (any ConsumerConnection)? { state.withLock { $0.connection } }

    func set(_ connection: any ConsumerConnection) { state.withLock { $0.connection = connection } }
}
