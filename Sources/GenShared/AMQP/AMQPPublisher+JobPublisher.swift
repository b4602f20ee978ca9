extension AMQPPublisher: JobPublisher {
    package nonisolated func publish(
        _ message: JobMessage, within limit: Duration
    ) async throws(PublisherError) -> PublishOutcome {
        let message = AMQPMessage(
            exchange: Topology.jobs, routingKey: Topology.routingKey(pool: message.pool, lane: message.lane),
            body: message.body, messageID: message.id.rawValue, type: message.kind)
        do throws(AMQPError) { return try await publish(message, within: limit) } catch {
            throw PublisherError(error.message, isFinal: error.code == .unauthorized)
        }
    }
}
