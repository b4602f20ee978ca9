import GenShared

/// Publishes messages with confirms.
protocol MessagePublisher: Sendable {
    /// Publishes a message, at most within that time.
    /// - Throws: `AMQPError` where no connection can be made; the message was not sent then.
    func publish(_ message: AMQPMessage, within limit: Duration) async throws(AMQPError) -> PublishOutcome
}

extension AMQPPublisher: MessagePublisher {}

/// Routes copies of messages over the worker's publishing connection: a blocked publisher must not stop acks.
struct AMQPRouter: MessageRouter {
    let publisher: any MessagePublisher
    /// How long a confirm is waited for.
    var limit: Duration = .seconds(10)

    func retry(_ delivery: JobDelivery, after delay: Duration) async -> Bool {
        // The routing key survives the tier: the message comes back to its own lane.
        await publish(delivery, exchange: Topology.tier(for: delay), headers: [])
    }

    func bury(_ delivery: JobDelivery, reason: String, detail: String) async -> Bool {
        // A header is bounded by the frame; the record has the whole text.
        await publish(
            delivery, exchange: Topology.dead,
            headers: [("x-gen-reason", reason), ("x-gen-error", String(detail.prefix(500)))])
    }

    private func publish(
        _ delivery: JobDelivery, exchange: String, headers: [(name: String, value: String)]
    ) async -> Bool {
        // A property has 255 bytes at most, and a longer one would break the connection; ours are shorter.
        func fitting(_ text: String?) -> String? { text.flatMap { $0.utf8.count <= 255 ? $0 : nil } }
        var message = AMQPMessage(
            exchange: exchange, routingKey: Topology.routingKey(pool: delivery.pool, lane: delivery.lane),
            body: delivery.body, messageID: fitting(delivery.messageID), type: fitting(delivery.type))
        message.headers = headers
        if let traceParent = fitting(delivery.traceParent) { message.headers.append(("traceparent", traceParent)) }
        do {
            let outcome = try await publisher.publish(message, within: limit)
            if outcome == .confirmed { return true }
            Log.error("publish_failed", ["exchange": .string(exchange), "outcome": .string("\(outcome)")])
        } catch {
            Log.error("publish_failed", ["exchange": .string(exchange), "reason": .string(error.message)])
        }
        return false
    }
}
