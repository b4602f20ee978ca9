import Glibc

/// Looks through a queue: fetches messages one by one and gives those back that nobody acknowledged.
///
/// A connection of its own, on a thread of its own: what it holds goes back when it is closed, and also when its
/// process dies. Used once, by one caller.
package actor AMQPBrowser {
    private nonisolated let executor = PinnedExecutor(name: "amqp-browse")
    private let timeouts: AMQPTimeouts
    private var handle: AMQPHandle?
    private var watch: SocketWatchdog.Watch?
    private var assembler = AMQPAssembler()
    private var error = AMQPError(.closed, "not connected to RabbitMQ yet")

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    package init(timeouts: AMQPTimeouts = AMQPTimeouts()) {
        self.timeouts = timeouts
        executor.poll(self)
    }

    isolated deinit { handle = nil }

    /// Connects and logs in.
    /// - Throws: `AMQPError`.
    package func open(url: AMQPURL, connectionName: String) throws(AMQPError) {
        let fresh = try AMQPHandle.connect(url: url, name: connectionName, timeouts: timeouts)
        watch = SocketWatchdog.shared.watch(fresh.descriptor)
        handle = fresh
    }

    /// Messages ready in a queue, or `nil` where there is no such queue.
    ///
    /// What was acknowledged before is gone then: the broker performs the calls of one channel in order.
    /// - Throws: `AMQPError`.
    package func ready(in queue: String) throws(AMQPError) -> Int? {
        try usable { handle throws(AMQPError) in try handle.queueCounts(queue)?.ready }
    }

    /// Messages ready in a queue and its consumers, or `nil` where there is no such queue.
    /// - Throws: `AMQPError`.
    package func counts(of queue: String) throws(AMQPError) -> (ready: Int, consumers: Int)? {
        try usable { handle throws(AMQPError) in try handle.queueCounts(queue) }
    }

    /// Whether there is an exchange of that name; nothing is declared.
    /// - Throws: `AMQPError`.
    package func exists(_ exchange: Topology.Exchange) throws(AMQPError) -> Bool {
        try usable { handle throws(AMQPError) in try handle.exchangeExists(exchange) }
    }

    /// The broker's version.
    package var serverVersion: String { handle?.serverVersion ?? "" }

    /// The next message of a queue, or `nil` where none is ready.
    /// - Throws: `AMQPError`.
    package func next(of queue: String) throws(AMQPError) -> AMQPBrowsedMessage? {
        let limit = timeouts.call
        return try usable { handle throws(AMQPError) in
            defer { handle.releaseBuffers() }
            return try handle.get(queue: queue, within: limit)
        }
    }

    /// Takes a message out of its queue for good.
    /// - Throws: `AMQPError`.
    package func acknowledge(_ message: AMQPBrowsedMessage) throws(AMQPError) {
        try usable { handle throws(AMQPError) in try handle.acknowledge(message.tag) }
    }

    /// Says good-bye; what is not acknowledged goes back into its queue, in no order that can be relied on.
    package func close() {
        watch?.begin()
        handle?.close()
        lose(AMQPError(.closed, "the RabbitMQ connection is closed"))
    }

    private func usable<Value>(_ body: (AMQPHandle) throws(AMQPError) -> Value) throws(AMQPError) -> Value {
        guard let handle else { throw error }
        watch?.begin()
        defer { watch?.end() }
        do throws(AMQPError) { return try body(handle) } catch {
            lose(error)
            throw error
        }
    }

    private func lose(_ error: AMQPError) {
        self.error = error
        handle = nil
        watch = nil
    }

    /// Heartbeats, between the calls: acting on a message may take longer than the broker's patience.
    private func turn() {
        guard let handle else { return }
        do throws(AMQPError) {
            while true {
                switch try handle.read(&assembler) {
                case .nothing: return
                case .frame(.closed(let error)): throw error
                case .frame, .part: continue
                }
            }
        } catch { lose(error) }
    }
}

extension AMQPBrowser: PollSource {
    package nonisolated func service() { assumeIsolated { $0.turn() } }
    package nonisolated var hasWork: Bool { false }

    package nonisolated func wait(wake: Int32) {
        let descriptor = assumeIsolated { $0.handle?.descriptor ?? -1 }
        // The library sends and checks heartbeats only inside its calls: look in once a second.
        pollDescriptor(
            descriptor, events: POLLIN, wake: wake, timeoutMilliseconds: descriptor < 0 ? -1 : 1000)
    }
}
