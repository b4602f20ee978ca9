import CRabbitMQ
import Glibc

/// One thing that the broker said.
enum AMQPFrame {
    case delivery(AMQPDelivery)
    case returned(messageID: String?, reason: String)
    case confirmed(tag: UInt64, isMultiple: Bool)
    case refused(tag: UInt64, isMultiple: Bool)
    case consumerCancelled(String)
    case closed(AMQPError)
    case blocked(String)
    case unblocked
}

/// Puts deliveries and returns together from their frames, without ever waiting for the next one: the library's own
/// `amqp_read_message` waits without end.
struct AMQPAssembler {
    private enum Kind {
        case delivery(AMQPDelivery)
        case returned(reason: String)
    }

    private var kind: Kind?
    private var messageID: String?
    private var remaining: UInt64 = 0
    private var body: [UInt8] = []

    mutating func begin(delivery: AMQPDelivery) { kind = .delivery(delivery) }
    mutating func begin(returned reason: String) { kind = .returned(reason: reason) }

    mutating func header(_ properties: amqp_basic_properties_t?, bodySize: UInt64) -> AMQPFrame? {
        remaining = bodySize
        body = []
        // The size comes from outside; a large body grows as its frames arrive.
        body.reserveCapacity(Int(min(bodySize, 1 << 20)))
        messageID = properties?.field(AMQP_BASIC_MESSAGE_ID_FLAG, \.message_id)
        if case .delivery(var delivery) = kind {
            delivery.messageID = messageID
            delivery.type = properties?.field(AMQP_BASIC_TYPE_FLAG, \.type)
            delivery.contentType = properties?.field(AMQP_BASIC_CONTENT_TYPE_FLAG, \.content_type)
            delivery.contentEncoding = properties?.field(AMQP_BASIC_CONTENT_ENCODING_FLAG, \.content_encoding)
            delivery.traceParent = properties?.traceParent
            kind = .delivery(delivery)
        }
        return remaining == 0 ? complete() : nil
    }

    mutating func append(_ fragment: amqp_bytes_t) -> AMQPFrame? {
        if let bytes = fragment.bytes {
            body.append(contentsOf: UnsafeRawBufferPointer(start: bytes, count: fragment.len))
        }
        remaining -= min(remaining, UInt64(fragment.len))
        return remaining == 0 ? complete() : nil
    }

    private mutating func complete() -> AMQPFrame? {
        defer {
            kind = nil
            body = []
        }
        switch kind {
        case .delivery(var delivery):
            delivery.body = body
            return .delivery(delivery)
        case .returned(let reason): return .returned(messageID: messageID, reason: reason)
        case nil: return nil
        }
    }
}

extension amqp_basic_properties_t {
    fileprivate func field(_ flag: Int32, _ path: KeyPath<amqp_basic_properties_t, amqp_bytes_t>) -> String? {
        _flags & UInt32(flag) != 0 ? self[keyPath: path].text : nil
    }

    fileprivate var traceParent: String? {
        guard _flags & UInt32(AMQP_BASIC_HEADERS_FLAG) != 0 else { return nil }
        for index in 0..<Int(headers.num_entries) {
            let entry = headers.entries[index]
            if entry.value.kind == UInt8(AMQP_FIELD_KIND_UTF8.rawValue), entry.key.text == "traceparent" {
                return entry.value.value.bytes.text
            }
        }
        return nil
    }
}

extension AMQPHandle {
    /// What one frame that has come completes; `nil` where it was a part of something.
    enum Reading {
        case nothing
        case part
        case frame(AMQPFrame)
    }

    /// Reads one frame without waiting; also sends and checks heartbeats.
    func read(_ assembler: inout AMQPAssembler) throws(AMQPError) -> Reading {
        var frame = amqp_frame_t()
        var now = timeval(tv_sec: 0, tv_usec: 0)
        let status = amqp_simple_wait_frame_noblock(state, &frame, &now)
        if status == AMQP_STATUS_TIMEOUT.rawValue { return .nothing }
        guard status == AMQP_STATUS_OK.rawValue else {
            throw AMQPError(.connectionLost, "the connection to RabbitMQ was lost: \(Self.text(status))")
        }
        let completed: AMQPFrame?
        switch Int32(frame.frame_type) {
        case AMQP_FRAME_METHOD: completed = method(frame.payload.method, &assembler)
        case AMQP_FRAME_HEADER:
            let properties = frame.payload.properties
            completed = assembler.header(
                properties.decoded?.assumingMemoryBound(to: amqp_basic_properties_t.self).pointee,
                bodySize: properties.body_size)
        case AMQP_FRAME_BODY: completed = assembler.append(frame.payload.body_fragment)
        default: completed = nil
        }
        return completed.map(Reading.frame) ?? .part
    }

    private func method(_ method: amqp_method_t, _ assembler: inout AMQPAssembler) -> AMQPFrame? {
        guard let decoded = method.decoded else { return method.id == MethodID.connectionUnblocked ? .unblocked : nil }
        switch method.id {
        case MethodID.basicDeliver:
            assembler.begin(delivery: AMQPDelivery(decoded.assumingMemoryBound(to: amqp_basic_deliver_t.self).pointee))
            return nil
        case MethodID.basicReturn:
            let returned = decoded.assumingMemoryBound(to: amqp_basic_return_t.self).pointee
            assembler.begin(returned: "\(returned.reply_code) \(returned.reply_text.text)")
            return nil
        case MethodID.basicAck:
            let ack = decoded.assumingMemoryBound(to: amqp_basic_ack_t.self).pointee
            return .confirmed(tag: ack.delivery_tag, isMultiple: ack.multiple != 0)
        case MethodID.basicNack:
            let nack = decoded.assumingMemoryBound(to: amqp_basic_nack_t.self).pointee
            return .refused(tag: nack.delivery_tag, isMultiple: nack.multiple != 0)
        case MethodID.basicCancel:
            let cancel = decoded.assumingMemoryBound(to: amqp_basic_cancel_t.self).pointee
            return .consumerCancelled(cancel.consumer_tag.text)
        case MethodID.connectionBlocked:
            let blocked = decoded.assumingMemoryBound(to: amqp_connection_blocked_t.self).pointee
            return .blocked(blocked.reason.text)
        case MethodID.connectionUnblocked: return .unblocked
        case MethodID.channelClose:
            let close = decoded.assumingMemoryBound(to: amqp_channel_close_t.self).pointee
            let error = AMQPError(.refused(Int(close.reply_code)), "RabbitMQ: \(close.reply_text.text)")
            // 3.10 repeats the close until it is answered.
            var closeOK = amqp_channel_close_ok_t()
            amqp_send_method(state, Self.channel, MethodID.channelCloseOK, &closeOK)
            return .closed(error)
        case MethodID.connectionClose:
            let close = decoded.assumingMemoryBound(to: amqp_connection_close_t.self).pointee
            let error = AMQPError(.connectionLost, "RabbitMQ closed the connection: \(close.reply_text.text)")
            var closeOK = amqp_connection_close_ok_t()
            amqp_send_method(state, 0, MethodID.connectionCloseOK, &closeOK)
            return .closed(error)
        default: return nil
        }
    }
}

extension AMQPDelivery {
    fileprivate init(_ deliver: amqp_basic_deliver_t) {
        self.init(
            tag: deliver.delivery_tag, consumer: deliver.consumer_tag.text, isRedelivered: deliver.redelivered != 0,
            exchange: deliver.exchange.text, routingKey: deliver.routing_key.text, messageID: nil, type: nil,
            contentType: nil,
            contentEncoding: nil, traceParent: nil, body: [])
    }
}
