import Glibc
import Synchronization

/// How long RabbitMQ may take.
package struct AMQPTimeouts: Sendable {
    /// To accept a connection and a login.
    package var connect: Duration = .seconds(5)
    /// To answer a call such as a declaration.
    package var call: Duration = .seconds(10)

    package init() {}
}

/// One connection with one channel, on a thread of its own, from its opening to its loss.
///
/// It never heals: what is lost stays lost, and its owner makes a new one. So a delivery tag, valid on one connection
/// only, cannot be used on another by mistake. Acks and messages are posted to a mailbox; the thread writes whatever
/// lies there in its next turn.
package actor AMQPConnection {
    package typealias Listener = @Sendable (AMQPEvent) -> Void
    private typealias Completion = @Sendable (PublishOutcome) -> Void

    private struct Publication: Sendable {
        let message: AMQPMessage
        let deadline: ContinuousClock.Instant
        let completion: Completion
    }

    private enum Request: Sendable {
        case acknowledge(UInt64)
        case requeue(UInt64)
        case publish(Publication)
    }

    private nonisolated let executor: PinnedExecutor
    private nonisolated let mailbox = Mailbox<Request>()
    private let listener: Listener
    private let clock = ContinuousClock()

    private var handle: AMQPHandle?
    private var watch: SocketWatchdog.Watch?
    private var assembler = AMQPAssembler()
    private var unconfirmed: [UInt64: Publication] = [:]
    private var returned: [String: String] = [:]
    private var lastPublished: UInt64 = 0
    private var waiting: [Publication] = []
    private var nextDeadline: ContinuousClock.Instant?
    private var isBlocked = false
    private var error = AMQPError(.closed, "not connected to RabbitMQ yet")

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// - Parameters:
    ///   - name: names the thread.
    ///   - listener: called on the connection's thread for deliveries and losses; must not block.
    package init(name: String, listener: @escaping Listener) {
        self.listener = listener
        executor = PinnedExecutor(name: name)
        executor.poll(self)
    }

    isolated deinit { fail(AMQPError(.closed, "the RabbitMQ connection is closed")) }

    /// Connects and logs in; takes at most the timeouts.
    /// - Parameter connectionName: shown by `rabbitmqctl list_connections`.
    /// - Throws: `AMQPError`.
    package func open(
        url: AMQPURL, connectionName: String, confirms: Bool, timeouts: AMQPTimeouts = AMQPTimeouts()
    ) throws(AMQPError) {
        let fresh = try AMQPHandle.connect(url: url, name: connectionName, timeouts: timeouts)
        if confirms { try fresh.selectConfirms() }
        watch = SocketWatchdog.shared.watch(fresh.descriptor)
        handle = fresh
    }

    /// The broker's version.
    package var serverVersion: String { handle?.serverVersion ?? "" }

    /// Consumes a queue with at most `prefetch` unacknowledged deliveries.
    package func consume(queue: String, tag: String, prefetch: Int) throws(AMQPError) {
        try usable { handle throws(AMQPError) in try handle.consume(queue: queue, tag: tag, prefetch: prefetch) }
    }

    /// Ends a consumer; deliveries that came before its end still reach the listener.
    package func cancelConsumer(tag: String) throws(AMQPError) {
        try usable { handle throws(AMQPError) in try handle.cancelConsumer(tag: tag) }
    }

    /// Declares what is missing of a topology.
    /// - Parameter onlyMissing: look first, and leave alone what is there, whatever its arguments.
    /// - Returns: the names of what was declared.
    package func declare(_ topology: Topology, onlyMissing: Bool) throws(AMQPError) -> [String] {
        try usable { handle throws(AMQPError) in
            var declared: [String] = []
            for exchange in topology.exchanges {
                watch?.begin()  // Each call has the whole time to itself.
                if onlyMissing, try handle.exchangeExists(exchange) { continue }
                try handle.declare(exchange)
                declared.append(exchange.name)
            }
            for queue in topology.queues {
                watch?.begin()
                if onlyMissing, try handle.queueExists(queue.name) { continue }
                try handle.declare(queue)
                declared.append(queue.name)
                for binding in topology.bindings where binding.queue == queue.name { try handle.bind(binding) }
            }
            return declared
        }
    }

    /// Ready messages and consumers of a queue, or `nil` where there is no such queue.
    package func queueCounts(_ name: String) throws(AMQPError) -> (ready: Int, consumers: Int)? {
        try usable { handle throws(AMQPError) in try handle.queueCounts(name) }
    }

    /// Acknowledges a delivery; on a lost connection nothing happens, since the broker delivers again anyway.
    package nonisolated func acknowledge(_ tag: UInt64) { post(.acknowledge(tag)) }

    /// Hands a delivery back; on a lost connection the broker has done so itself.
    package nonisolated func requeue(_ tag: UInt64) { post(.requeue(tag)) }

    /// Publishes a message and waits for its confirm, at most that long.
    ///
    /// Cancellation does not shorten the wait: a message that was sent may be taken in any case.
    package nonisolated func publish(_ message: AMQPMessage, within limit: Duration) async -> PublishOutcome {
        let deadline = clock.now + limit
        return await withCheckedContinuation { continuation in
            let publication = Publication(message: message, deadline: deadline) { continuation.resume(returning: $0) }
            if !post(.publish(publication)) {
                publication.completion(.notSent("the RabbitMQ connection is closed"))
            }
        }
    }

    /// Writes what was posted, says good-bye, and fails the rest.
    package func close() {
        if handle != nil { turn() }
        handle?.close()
        fail(AMQPError(.closed, "the RabbitMQ connection is closed"))
    }

    @discardableResult
    private nonisolated func post(_ request: Request) -> Bool {
        guard mailbox.post(request) else { return false }
        executor.wake()
        return true
    }

    private func usable<Value>(
        _ body: (AMQPHandle) throws(AMQPError) -> Value
    ) throws(AMQPError) -> Value {
        guard let handle else { throw error }
        watch?.begin()
        let channelNumber = handle.channelNumber
        defer {
            watch?.end()
            if handle.channelNumber != channelNumber { forgetPublications() }
        }
        do throws(AMQPError) { return try body(handle) } catch {
            // The broker closed the channel, or the socket is gone: either way nothing works on it any more.
            lose(error)
            throw error
        }
    }
}

// MARK: - The thread's turn

extension AMQPConnection: PollSource {
    package nonisolated func service() { assumeIsolated { $0.turn() } }
    package nonisolated var hasWork: Bool { !mailbox.isEmpty }

    package nonisolated func wait(wake: Int32) {
        let (descriptor, timeout): (Int32, Int32) = assumeIsolated { connection in
            guard let handle = connection.handle else { return (-1, -1) }
            // The library may hold whole frames that `poll` cannot see.
            if handle.hasBufferedFrames { return (-1, 0) }
            // Heartbeats are sent and checked only inside the library's calls: look in once a second.
            // A publication whose time is over is told so then, not up to a second later.
            let due = connection.nextDeadline.map { ($0 - connection.clock.now).milliseconds + 1 } ?? 1000
            return (handle.descriptor, Int32(clamping: min(1000, due)))
        }
        if timeout != 0 { pollDescriptor(descriptor, events: POLLIN, wake: wake, timeoutMilliseconds: timeout) }
    }

    /// Frames read in one turn before the mailbox is looked at again.
    private static let framesPerTurn = 64

    private func turn() {
        guard let handle else { return }
        watch?.begin()
        defer { watch?.end() }
        do throws(AMQPError) {
            try perform(mailbox.takeAll(), handle)
            for _ in 0..<Self.framesPerTurn {
                guard case let reading = try handle.read(&assembler), !reading.isNothing else { break }
                if case .frame(let frame) = reading { try handleFrame(frame, handle) }
            }
            handle.releaseBuffers()
            expirePublications()
        } catch {
            lose(error)
        }
    }

    /// Performs requests in order; those after one that fails are put where `fail` finds them.
    private func perform(_ requests: [Request], _ handle: AMQPHandle) throws(AMQPError) {
        var rest = requests[...]
        do throws(AMQPError) {
            while let request = rest.popFirst() { try perform(request, handle) }
        } catch {
            for case .publish(let publication) in rest { waiting.append(publication) }
            throw error
        }
    }

    private func perform(_ request: Request, _ handle: AMQPHandle) throws(AMQPError) {
        switch request {
        case .acknowledge(let tag): try handle.acknowledge(tag)
        case .requeue(let tag): try handle.requeue(tag)
        case .publish(let publication):
            nextDeadline = min(nextDeadline ?? publication.deadline, publication.deadline)
            // A blocked broker does not read: a write would hang this thread once the socket's buffer is full.
            if isBlocked { waiting.append(publication) } else { try write(publication, handle) }
        }
    }

    private func write(_ publication: Publication, _ handle: AMQPHandle) throws(AMQPError) {
        lastPublished += 1
        unconfirmed[lastPublished] = publication
        try handle.publish(publication.message)
    }

    private func handleFrame(_ frame: AMQPFrame, _ handle: AMQPHandle) throws(AMQPError) {
        switch frame {
        case .delivery(let delivery): listener(.delivery(delivery))
        case .returned(let messageID, let reason): returned[messageID ?? ""] = reason
        case .confirmed(let tag, let isMultiple): settle(tag, isMultiple, isRefused: false)
        case .refused(let tag, let isMultiple): settle(tag, isMultiple, isRefused: true)
        case .consumerCancelled(let tag): listener(.consumerCancelled(tag))
        case .closed(let error): throw error
        case .blocked(let reason):
            isBlocked = true
            listener(.blocked(reason))
        case .unblocked:
            isBlocked = false
            listener(.unblocked)
            // One at a time: what a failing write leaves is still there for `fail`.
            while !waiting.isEmpty { try write(waiting.removeFirst(), handle) }
        }
    }

    private func settle(_ tag: UInt64, _ isMultiple: Bool, isRefused: Bool) {
        // Confirms may come out of order: a multiple one settles whatever is still open up to its tag.
        // Which of several without an id was returned cannot be told: none of them counts as taken.
        defer { if unconfirmed.values.allSatisfy({ $0.message.messageID != nil }) { returned[""] = nil } }
        let numbers = isMultiple ? unconfirmed.keys.filter { $0 <= tag }.sorted() : [tag]
        for number in numbers {
            guard let publication = unconfirmed.removeValue(forKey: number) else { continue }
            // The return of an unroutable message comes before its ack.
            let reason = publication.message.messageID.map { returned.removeValue(forKey: $0) } ?? returned[""]
            publication.completion(isRefused ? .nacked : reason.map(PublishOutcome.returned) ?? .confirmed)
        }
    }

    /// The channel is another now: what it had not confirmed will never be.
    private func forgetPublications() {
        for publication in unconfirmed.values { publication.completion(.unknown("the channel was closed")) }
        unconfirmed = [:]
        returned = [:]
        lastPublished = 0
    }

    private func expirePublications() {
        let now = clock.now
        guard let nextDeadline, nextDeadline <= now else { return }
        for publication in waiting where publication.deadline <= now {
            publication.completion(.notSent("RabbitMQ is blocked: it is out of memory or disk"))
        }
        waiting.removeAll { $0.deadline <= now }
        for (tag, publication) in unconfirmed where publication.deadline <= now {
            unconfirmed[tag] = nil
            publication.completion(.unknown("RabbitMQ did not confirm in time"))
        }
        self.nextDeadline = (waiting.map(\.deadline) + unconfirmed.values.map(\.deadline)).min()
    }

    private func lose(_ error: AMQPError) {
        guard handle != nil else { return }
        fail(error)
        listener(.lost(error))
    }

    private func fail(_ error: AMQPError) {
        self.error = error
        handle = nil
        watch = nil
        let left = mailbox.close()
        for case .publish(let publication) in left { publication.completion(.notSent(error.message)) }
        for publication in waiting { publication.completion(.notSent(error.message)) }
        for publication in unconfirmed.values { publication.completion(.unknown(error.message)) }
        waiting = []
        unconfirmed = [:]
    }
}

extension AMQPHandle.Reading {
    fileprivate var isNothing: Bool {
        if case .nothing = self { true } else { false }
    }
}
