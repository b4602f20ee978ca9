import CRabbitMQ
import Glibc

/// A message that was fetched to be looked at; until it is acknowledged it goes back when the connection ends.
package struct AMQPBrowsedMessage: Sendable {
    /// Names this delivery on its connection.
    package var tag: UInt64
    package var routingKey: String
    package var messageID: String?
    package var type: String?
    /// Those that are texts.
    package var headers: [String: String] = [:]
    package var body: [UInt8] = []

    package init(tag: UInt64, routingKey: String, messageID: String? = nil, type: String? = nil) {
        self.tag = tag
        self.routingKey = routingKey
        self.messageID = messageID
        self.type = type
    }
}

extension AMQPHandle {
    /// Fetches the next message of a queue, to be acknowledged by hand.
    /// - Returns: `nil` where the queue has none ready.
    func get(queue: String, within limit: Duration) throws(AMQPError) -> AMQPBrowsedMessage? {
        let reply = withAMQPBytes(queue) { amqp_basic_get(state, Self.channel, $0, 0) }
        try check(reply, "reading \(queue)")
        guard reply.reply.id == MethodID.basicGetOK, let decoded = reply.reply.decoded else { return nil }
        let ok = decoded.assumingMemoryBound(to: amqp_basic_get_ok_t.self).pointee
        var message = AMQPBrowsedMessage(tag: ok.delivery_tag, routingKey: ok.routing_key.text)
        try readContent(of: &message, until: ContinuousClock.now + limit)
        return message
    }

    /// Reads header and body, frame by frame: the library's own `amqp_read_message` waits without end.
    private func readContent(
        of message: inout AMQPBrowsedMessage, until end: ContinuousClock.Instant
    ) throws(AMQPError) {
        var remaining: UInt64?
        while remaining != 0 {
            var frame = amqp_frame_t()
            var time = timeval(max(.milliseconds(1), end - .now))
            let status = amqp_simple_wait_frame_noblock(state, &frame, &time)
            guard status == AMQP_STATUS_OK.rawValue else {
                throw AMQPError(.connectionLost, "a message was cut off: \(Self.text(status))")
            }
            switch Int32(frame.frame_type) {
            case AMQP_FRAME_HEADER:
                let properties = frame.payload.properties
                remaining = properties.body_size
                if let decoded = properties.decoded {
                    message.read(decoded.assumingMemoryBound(to: amqp_basic_properties_t.self).pointee)
                }
            case AMQP_FRAME_BODY:
                let fragment = frame.payload.body_fragment
                message.body += fragment.copied
                remaining = (remaining ?? 0) - min(remaining ?? 0, UInt64(fragment.len))
            default:
                // Of what may come in between, only an end matters: blocked and unblocked are for publishers.
                let method = frame.payload.method.id
                if method == MethodID.channelClose || method == MethodID.connectionClose {
                    throw AMQPError(.connectionLost, "RabbitMQ closed the connection while a message was read")
                }
            }
        }
    }
}

extension AMQPBrowsedMessage {
    fileprivate mutating func read(_ properties: amqp_basic_properties_t) {
        func has(_ flag: Int32) -> Bool { properties._flags & UInt32(flag) != 0 }
        if has(AMQP_BASIC_MESSAGE_ID_FLAG) { messageID = properties.message_id.text }
        if has(AMQP_BASIC_TYPE_FLAG) { type = properties.type.text }
        guard has(AMQP_BASIC_HEADERS_FLAG) else { return }
        for index in 0..<Int(properties.headers.num_entries) {
            let entry = properties.headers.entries[index]
            guard entry.value.kind == UInt8(AMQP_FIELD_KIND_UTF8.rawValue) else { continue }
            headers[entry.key.text] = entry.value.value.bytes.text
        }
    }
}

extension MethodID {
    fileprivate static let basicGetOK: UInt32 = 0x003C_0047
}
