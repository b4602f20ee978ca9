/// A message to publish: always persistent, always mandatory, always confirmed.
package struct AMQPMessage: Sendable {
    package var exchange: String
    package var routingKey: String
    package var body: [UInt8]
    package var messageID: String?
    package var type: String?
    /// Our own headers only: a copied `x-death` gets a message lost in a retry tier.
    package var headers: [(name: String, value: String)] = []

    package init(exchange: String, routingKey: String, body: [UInt8], messageID: String?, type: String?) {
        self.exchange = exchange
        self.routingKey = routingKey
        self.body = body
        self.messageID = messageID
        self.type = type
    }
}

/// A message that was handed to us.
package struct AMQPDelivery: Sendable {
    /// Names this delivery on its connection, for ack and requeue.
    package var tag: UInt64
    package var consumer: String
    /// A hint only: RabbitMQ sets it on messages that were never delivered, too.
    package var isRedelivered: Bool
    package var exchange: String
    package var routingKey: String
    package var messageID: String?
    package var type: String?
    package var contentType: String?
    package var contentEncoding: String?
    /// `traceparent` is the one header that we read.
    package var traceParent: String?
    package var body: [UInt8]

    package init(
        tag: UInt64, consumer: String, isRedelivered: Bool, exchange: String, routingKey: String, messageID: String?,
        type: String?, contentType: String?, contentEncoding: String?, traceParent: String?, body: [UInt8]
    ) {
        self.tag = tag
        self.consumer = consumer
        self.isRedelivered = isRedelivered
        self.exchange = exchange
        self.routingKey = routingKey
        self.messageID = messageID
        self.type = type
        self.contentType = contentType
        self.contentEncoding = contentEncoding
        self.traceParent = traceParent
        self.body = body
    }
}

/// What a connection tells its owner.
package enum AMQPEvent: Sendable {
    case delivery(AMQPDelivery)
    /// RabbitMQ ended a consumer: its queue is gone, or an acknowledgement was late.
    case consumerCancelled(String)
    /// The broker takes no messages for now; consuming goes on.
    case blocked(String)
    case unblocked
    /// The connection or its channel is gone, and with it every delivery tag.
    case lost(AMQPError)
}
