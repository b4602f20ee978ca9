import CRabbitMQ

extension AMQPHandle {
    /// Turns confirms on for the channel.
    func selectConfirms() throws(AMQPError) {
        amqp_confirm_select(state, Self.channel)
        try checkReply("asking for confirms")
        confirms = true
    }

    /// Consumes a queue with manual acknowledgement, at most `prefetch` deliveries at a time.
    func consume(queue: String, tag: String, prefetch: Int) throws(AMQPError) {
        // Not global: each consumer that starts after this has this bound for itself.
        amqp_basic_qos(state, Self.channel, 0, UInt16(clamping: prefetch), 0)
        try checkReply("setting the prefetch of \(queue)")
        withAMQPBytes(queue) { queue in
            withAMQPBytes(tag) { tag in
                _ = amqp_basic_consume(state, Self.channel, queue, tag, 0, 0, 0, amqp_empty_table)
            }
        }
        try checkReply("consuming \(queue)")
    }

    /// Ends a consumer; its unacknowledged deliveries stay ours.
    func cancelConsumer(tag: String) throws(AMQPError) {
        withAMQPBytes(tag) { _ = amqp_basic_cancel(state, Self.channel, $0) }
        try checkReply("ending the consumer \(tag)")
    }

    /// Writes an ack; whether the broker has processed it is not known.
    func acknowledge(_ tag: UInt64) throws(AMQPError) {
        try checkWrite(amqp_basic_ack(state, Self.channel, tag, 0), "acknowledging")
    }

    /// Hands a delivery back to its queue.
    func requeue(_ tag: UInt64) throws(AMQPError) {
        try checkWrite(amqp_basic_nack(state, Self.channel, tag, 0, 1), "requeueing")
    }

    /// Writes a message; only its confirm says that it was taken.
    func publish(_ message: AMQPMessage) throws(AMQPError) {
        var properties = amqp_basic_properties_t()
        properties._flags =
            UInt32(AMQP_BASIC_CONTENT_TYPE_FLAG) | UInt32(AMQP_BASIC_DELIVERY_MODE_FLAG)
            | UInt32(AMQP_BASIC_HEADERS_FLAG)
        properties.delivery_mode = 2
        if message.messageID != nil { properties._flags |= UInt32(AMQP_BASIC_MESSAGE_ID_FLAG) }
        if message.type != nil { properties._flags |= UInt32(AMQP_BASIC_TYPE_FLAG) }
        let headers = message.headers.map { ($0.name, AMQPTable.Value.text($0.value)) }
        let status = withAMQPBytes("application/json") { contentType in
            withAMQPBytes(message.messageID ?? "") { messageID in
                withAMQPBytes(message.type ?? "") { type in
                    AMQPTable.with(headers) { table in
                        properties.content_type = contentType
                        properties.message_id = messageID
                        properties.type = type
                        properties.headers = table
                        return write(message, &properties)
                    }
                }
            }
        }
        try checkWrite(status, "publishing")
    }

    private func write(_ message: AMQPMessage, _ properties: inout amqp_basic_properties_t) -> Int32 {
        withAMQPBytes(message.exchange) { exchange in
            withAMQPBytes(message.routingKey) { key in
                withAMQPBytes(message.body) { body in
                    amqp_basic_publish(state, Self.channel, exchange, key, 1, 0, &properties, body)
                }
            }
        }
    }

    private func checkWrite(_ status: Int32, _ what: String) throws(AMQPError) {
        guard status != AMQP_STATUS_OK.rawValue else { return }
        // A message that did not fit has left half a frame behind: the connection is of no use after any error.
        throw AMQPError(.connectionLost, "\(what) failed: \(Self.text(status))")
    }

    // MARK: Topology

    /// Whether the queue exists; a "no" closes the channel, so it is opened anew.
    func queueExists(_ name: String) throws(AMQPError) -> Bool {
        withAMQPBytes(name) { _ = amqp_queue_declare(state, Self.channel, $0, 1, 1, 0, 0, amqp_empty_table) }
        return try answer("looking for the queue \(name)")
    }

    /// Messages ready in a queue and its consumers, or `nil` where there is no such queue.
    func queueCounts(_ name: String) throws(AMQPError) -> (ready: Int, consumers: Int)? {
        let counts = withAMQPBytes(name) {
            amqp_queue_declare(state, Self.channel, $0, 1, 1, 0, 0, amqp_empty_table).map {
                (ready: Int($0.pointee.message_count), consumers: Int($0.pointee.consumer_count))
            }
        }
        return try answer("looking for the queue \(name)") ? counts : nil
    }

    /// Whether the exchange exists.
    func exchangeExists(_ exchange: Topology.Exchange) throws(AMQPError) -> Bool {
        withAMQPBytes(exchange.name) { name in
            withAMQPBytes(exchange.type) { type in
                _ = amqp_exchange_declare(state, Self.channel, name, type, 1, 1, 0, 0, amqp_empty_table)
            }
        }
        return try answer("looking for the exchange \(exchange.name)")
    }

    func declare(_ exchange: Topology.Exchange) throws(AMQPError) {
        withAMQPBytes(exchange.name) { name in
            withAMQPBytes(exchange.type) { type in
                _ = amqp_exchange_declare(state, Self.channel, name, type, 0, 1, 0, 0, amqp_empty_table)
            }
        }
        try checkReply("declaring the exchange \(exchange.name)")
    }

    func declare(_ queue: Topology.QueueDeclaration) throws(AMQPError) {
        let arguments = queue.arguments.sorted { $0.key < $1.key }.map { key, value in
            switch value {
            case .text(let text): (key, AMQPTable.Value.text(text))
            case .integer(let integer): (key, AMQPTable.Value.integer(integer))
            }
        }
        AMQPTable.with(arguments) { table in
            withAMQPBytes(queue.name) { _ = amqp_queue_declare(state, Self.channel, $0, 0, 1, 0, 0, table) }
        }
        try checkReply("declaring the queue \(queue.name)")
    }

    func bind(_ binding: Topology.Binding) throws(AMQPError) {
        withAMQPBytes(binding.queue) { queue in
            withAMQPBytes(binding.exchange) { exchange in
                withAMQPBytes(binding.key) { key in
                    _ = amqp_queue_bind(state, Self.channel, queue, exchange, key, amqp_empty_table)
                }
            }
        }
        try checkReply("binding \(binding.queue) to \(binding.exchange)")
    }

    private func answer(_ what: String) throws(AMQPError) -> Bool {
        do throws(AMQPError) {
            try checkReply(what)
            return true
        } catch {
            guard error.code == .refused(404) else { throw error }
            try reopenChannel()
            return false
        }
    }

    /// The broker has closed the channel: says so back, and opens it again.
    private func reopenChannel() throws(AMQPError) {
        var closeOK = amqp_channel_close_ok_t()
        let status = amqp_send_method(state, Self.channel, MethodID.channelCloseOK, &closeOK)
        guard status == AMQP_STATUS_OK.rawValue else {
            throw AMQPError(.connectionLost, "the channel cannot be closed: \(Self.text(status))")
        }
        amqp_channel_open(state, Self.channel)
        try checkReply("opening a channel again")
        // A new channel confirms nothing until it is asked to, and counts from 1 again.
        channelNumber += 1
        if confirms { try selectConfirms() }
    }
}
