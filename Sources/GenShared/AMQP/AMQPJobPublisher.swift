import Synchronization

/// Publishes jobs' messages, and knows of a broker that takes none before it sends the first.
///
/// A broker that is out of memory or disk says so only to a connection that has published something, and does not read
/// what came meanwhile: a job that was sent then would be of unknown fate. So the first thing on each connection is a
/// message that no queue takes; while it is not returned, no job is sent, and that none was is certain.
package final class AMQPJobPublisher: JobPublisher {
    private let publisher: AMQPPublisher
    /// The connection that has answered.
    private let proven = Mutex<WeakConnection>(WeakConnection())

    private struct WeakConnection {
        weak var connection: AMQPConnection?
    }

    package init(_ publisher: AMQPPublisher) { self.publisher = publisher }

    package func publish(
        _ message: JobMessage, within limit: Duration
    ) async throws(PublisherError) -> PublishOutcome {
        let end = ContinuousClock.now + limit
        let message = AMQPMessage(
            exchange: Topology.jobs, routingKey: Topology.routingKey(pool: message.pool, lane: message.lane),
            body: message.body, messageID: message.id.rawValue, type: message.kind)
        do throws(AMQPError) {
            let connection = try await publisher.usable(within: limit)
            if let refusal = await refusal(connection, until: end) { return refusal }
            return try await publisher.publish(message, within: max(.milliseconds(1), end - .now))
        } catch { throw PublisherError(error.message, isFinal: error.code == .unauthorized) }
    }

    /// - Returns: why nothing can be sent; `nil` where the broker answers.
    private func refusal(_ connection: AMQPConnection, until end: ContinuousClock.Instant) async -> PublishOutcome? {
        guard proven.withLock({ $0.connection !== connection }) else { return nil }
        switch await connection.publish(.probe, within: max(.milliseconds(1), end - .now)) {
        // Whatever it was, it was an answer.
        case .returned, .confirmed, .nacked:
            proven.withLock { $0.connection = connection }
            return nil
        case .notSent(let reason):
            await publisher.forget(connection)
            return .notSent(reason)
        case .unknown(let reason):
            await publisher.forget(connection)
            // Lost rather than silent: the reason says why.
            guard ContinuousClock.now >= end else { return .notSent(reason) }
            return .notSent("RabbitMQ takes no messages: it is blocked, out of memory or disk, or too slow")
        }
    }
}

extension AMQPMessage {
    /// A message that no queue takes: it comes back from a broker that takes messages.
    package static let probe = AMQPMessage(
        exchange: Topology.jobs, routingKey: "gen.probe.no-queue", body: [], messageID: nil, type: nil)
}
