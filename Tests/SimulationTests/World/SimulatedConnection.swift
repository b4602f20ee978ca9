import GenShared

@testable import GenWorker

/// A worker's consuming connection to the simulated broker.
///
/// `@unchecked`: see `Simulation`.
final class SimulatedConnection: ConsumerConnection, @unchecked Sendable {
    struct Consumer {
        let tag: String
        let queue: String
        let prefetch: Int
    }

    let number: UInt64
    let process: SimulatedProcess
    private let broker: SimulatedBroker
    private let listener: AMQPConnection.Listener
    private let faults: Set<WorkerFault>
    var consumers: [String: Consumer] = [:]
    var unacknowledged: [UInt64: (message: SimulatedBroker.Message, queue: String, tag: String)] = [:]
    /// Nothing passes any more.
    var isCut = false
    /// The server has taken back what it held.
    var isForgotten = false
    private var isLost = false
    private var nextTag: UInt64 = 0
    private var lastDelivery: Duration = .zero

    private var simulation: Simulation { process.simulation }

    init(
        _ number: UInt64, _ process: SimulatedProcess, _ broker: SimulatedBroker, faults: Set<WorkerFault>,
        listener: @escaping AMQPConnection.Listener
    ) {
        self.number = number
        self.process = process
        self.broker = broker
        self.faults = faults
        self.listener = listener
    }

    // MARK: The server's side

    func hasRoom(for consumer: Consumer) -> Bool {
        unacknowledged.values.count { $0.tag == consumer.tag } < consumer.prefetch
    }

    func deliver(_ message: SimulatedBroker.Message, _ queue: String, _ consumer: Consumer) {
        nextTag += 1
        let tag = nextTag
        unacknowledged[tag] = (message, queue, consumer.tag)
        let due = max(lastDelivery, simulation.elapsed + simulation.duration(0...5))
        lastDelivery = due
        let content = message.content
        let delivery = AMQPDelivery(
            tag: tag, consumer: consumer.tag, isRedelivered: message.isRedelivered, exchange: Topology.jobs,
            routingKey: message.routingKey, messageID: content.messageID, type: content.type,
            contentType: "application/json", contentEncoding: nil, traceParent: nil, body: content.body)
        simulation.after(due - simulation.elapsed, in: process) { [self] in
            guard !isCut, process.isAlive else { return }
            simulation.trace("\(process.name) gets \(tag): \(content.messageID ?? "")")
            if faults.contains(.acknowledgesOnDelivery) { acknowledge(tag) }
            let id = content.messageID ?? ""
            if faults.contains(.acknowledgesOwnRedelivery), process.unsettled[id] != nil { return acknowledge(tag) }
            process.unsettled[id] = tag
            listener(.delivery(delivery))
        }
    }

    func tellLost() {
        guard !isLost, process.isAlive else { return }
        isLost = true
        listener(.lost(AMQPError(.connectionLost, "the connection to RabbitMQ was lost")))
    }

    // MARK: The worker's side

    func acknowledge(_ tag: UInt64) {
        forget(tag)
        pass { [self] in
            guard let entry = unacknowledged.removeValue(forKey: tag) else { return }
            simulation.trace("\(process.name) acks \(tag)")
            broker.acknowledged(entry.message)
            broker.dispatch(entry.queue)
        }
    }

    func requeue(_ tag: UInt64) {
        forget(tag)
        pass { [self] in
            guard let entry = unacknowledged.removeValue(forKey: tag) else { return }
            simulation.trace("\(process.name) requeues \(tag)")
            broker.requeued(entry.message, entry.queue)
        }
    }

    private func forget(_ tag: UInt64) {
        for (id, held) in process.unsettled where held == tag { process.unsettled[id] = nil }
    }

    /// Written now, there a little later, if the connection lives that long.
    private func pass(_ body: @escaping () -> Void) {
        guard !isCut, !isLost, process.isAlive else { return }
        simulation.after(simulation.duration(0...4)) { [self] in
            if !isForgotten, !isCut { body() }
        }
    }

    func consume(queue: String, tag: String, prefetch: Int) async throws(AMQPError) {
        try await call { [self] in
            simulation.trace("\(process.name) consumes \(tag) \(prefetch)")
            consumers[tag] = Consumer(tag: tag, queue: queue, prefetch: prefetch)
            broker.dispatch(queue)
        }
    }

    func cancelConsumer(tag: String) async throws(AMQPError) {
        try await call { [self] in
            simulation.trace("\(process.name) cancels \(tag)")
            consumers[tag] = nil
        }
    }

    func declare(_ topology: Topology, onlyMissing: Bool) async throws(AMQPError) -> [String] {
        try await call {}
        return []
    }

    func close() async { broker.cut(self, server: .zero) }

    private func call(_ body: @escaping () -> Void) async throws(AMQPError) {
        let isDone = await withUnsafeContinuation { continuation in
            guard !isLost, process.isAlive else { return continuation.resume(returning: false) }
            simulation.after(simulation.duration(0...4)) { [self] in
                let isOpen = !isCut && !isForgotten
                if isOpen { body() }
                // A call on a cut connection ends with the library's timeout.
                simulation.after(isOpen ? simulation.duration(0...4) : simulation.duration(0...10_000), in: process) {
                    continuation.resume(returning: isOpen)
                }
            }
        }
        guard isDone else {
            tellLost()
            throw AMQPError(.connectionLost, "the connection to RabbitMQ was lost")
        }
    }
}

/// Connects a worker to the simulated broker.
///
/// `@unchecked`: see `Simulation`.
final class SimulatedConnector: ConsumerConnector, @unchecked Sendable {
    private let process: SimulatedProcess
    private let broker: SimulatedBroker
    private let faults: Set<WorkerFault>

    init(_ process: SimulatedProcess, _ broker: SimulatedBroker, faults: Set<WorkerFault>) {
        self.process = process
        self.broker = broker
        self.faults = faults
    }

    func connect(listener: @escaping AMQPConnection.Listener) async throws(AMQPError) -> any ConsumerConnection {
        let simulation = process.simulation
        let connection = SimulatedConnection(
            simulation.random.next(), process, broker, faults: faults, listener: listener)
        let isThere = await withUnsafeContinuation { continuation in
            simulation.after(simulation.duration(1...20), in: process) { [self] in
                let isThere = broker.isReachable(from: process)
                if isThere { broker.add(connection) }
                continuation.resume(returning: isThere)
            }
        }
        guard isThere else { throw AMQPError(.unreachable, "cannot reach RabbitMQ") }
        // A process that dies takes its connection along; one that is stopped loses it to the missing heartbeats.
        process.onDeath.append { [broker] in broker.cut(connection, server: simulation.duration(0...100)) }
        return connection
    }
}

/// Publishes to the simulated broker, for workers and submitters.
///
/// `@unchecked`: see `Simulation`.
final class SimulatedPublisher: MessagePublisher, JobPublisher, @unchecked Sendable {
    private let process: SimulatedProcess
    private let broker: SimulatedBroker
    private let mishaps: Double

    /// - Parameter mishaps: the probability that the connection breaks before or after the broker has the message.
    init(_ process: SimulatedProcess, _ broker: SimulatedBroker, mishaps: Double) {
        self.process = process
        self.broker = broker
        self.mishaps = mishaps
    }

    func publish(_ message: AMQPMessage, within limit: Duration) async throws(AMQPError) -> PublishOutcome {
        guard process.isAlive else { throw AMQPError(.closed, "the process is dead") }
        guard broker.isReachable(from: process) else { throw AMQPError(.unreachable, "cannot reach RabbitMQ") }
        let simulation = process.simulation
        let fate = simulation.chance(mishaps) ? Int.random(in: 0..<4, using: &simulation.random) : 4
        if fate == 3 { return .notSent("the connection was lost before") }
        return await withUnsafeContinuation { continuation in
            simulation.after(simulation.duration(0...6)) { [self] in
                // The bytes may be on their way when the sender dies.
                guard broker.isUp, fate != 0 else { return answer(continuation, .unknown("lost"), limit) }
                if fate == 1, simulation.chance(0.3) { return answer(continuation, .nacked, .zero) }
                let isRouted = broker.route(message)
                let outcome: PublishOutcome = isRouted ? .confirmed : .returned("312 NO_ROUTE")
                let isLost = fate == 2 || !broker.isReachable(from: process)
                // A confirm may take its time: a copy in a tier is back before it is known to be safe.
                let delay = simulation.chance(mishaps) ? simulation.duration(0...9000) : .zero
                simulation.after(delay) { [self] in
                    answer(continuation, isLost ? .unknown("lost") : outcome, isLost ? limit : .zero)
                }
            }
        }
    }

    private func answer(
        _ continuation: UnsafeContinuation<PublishOutcome, Never>, _ outcome: PublishOutcome, _ limit: Duration
    ) {
        let simulation = process.simulation
        let delay = limit > .zero && simulation.chance(0.5) ? limit : simulation.duration(0...20)
        simulation.after(delay, in: process) { continuation.resume(returning: outcome) }
    }

    func publish(_ message: JobMessage, within limit: Duration) async throws(PublisherError) -> PublishOutcome {
        let copy = AMQPMessage(
            exchange: Topology.jobs, routingKey: Topology.routingKey(pool: message.pool, lane: message.lane),
            body: message.body, messageID: message.id.rawValue, type: message.kind)
        do throws(AMQPError) { return try await publish(copy, within: limit) } catch {
            throw PublisherError(error.message, isFinal: false)
        }
    }
}

/// A rule of the worker's side that is broken on purpose.
enum WorkerFault: String, CaseIterable, Sendable {
    /// A delivery is acknowledged when it comes, not when its job has ended.
    case acknowledgesOnDelivery
    /// A delivery of a job that runs here already is taken for done, not for the one that counts now.
    case acknowledgesOwnRedelivery
    /// A copy counts as safe whether or not it was confirmed.
    case trustsUnconfirmedCopies
    /// Leases are not renewed.
    case neverRenews
    /// A watcher takes each live event for the next one.
    case watchesWithoutPrevious
}
