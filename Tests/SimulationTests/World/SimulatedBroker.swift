import GenShared
import GenTestSupport

/// RabbitMQ: queues, tiers, consumers with prefetch, confirms, and what can happen to a server.
///
/// `@unchecked`: see `Simulation`.
final class SimulatedBroker: @unchecked Sendable {
    struct Message {
        let number: UInt64
        let routingKey: String
        let content: AMQPMessage
        var isRedelivered = false
    }

    let simulation: Simulation
    private(set) var isUp = true
    private var cutOff: Set<ObjectIdentifier> = []
    private var queues: [String: [Message]] = [:]
    private var connections: [SimulatedConnection] = []
    private var messageCount: UInt64 = 0
    /// How many copies of a job's message the broker holds, wherever.
    private(set) var copies: [String: Int] = [:]
    private(set) var dead: [(id: String, reason: String)] = []
    /// Told when the last copy of a job's message is gone.
    var onLastCopyGone: ((String) -> Void)?

    init(_ simulation: Simulation, pools: [String]) {
        self.simulation = simulation
        for pool in pools { for lane in Lane.allCases { queues[Topology.queue(pool: pool, lane: lane)] = [] } }
        queues[Topology.dropped] = []
    }

    func isReachable(from process: SimulatedProcess) -> Bool {
        isUp && process.isAlive && !cutOff.contains(ObjectIdentifier(process))
    }

    /// Messages that wait or are held by a consumer.
    var isEmpty: Bool { copies.values.allSatisfy { $0 == 0 } }

    // MARK: Trouble

    func setUp(_ isUp: Bool) {
        self.isUp = isUp
        simulation.trace("broker \(isUp ? "up" : "down")")
        if !isUp { for connection in connections { cut(connection, server: .zero) } }
    }

    func cutOff(_ process: SimulatedProcess) {
        cutOff.insert(ObjectIdentifier(process))
        for connection in connections where connection.process === process { cut(connection, server: nil) }
    }

    func reconnect(_ process: SimulatedProcess) { cutOff.remove(ObjectIdentifier(process)) }

    func cutConnections(of process: SimulatedProcess) {
        for connection in connections where connection.process === process { cut(connection, server: nil) }
    }

    /// Breaks a connection: either side may notice first, the other by its missing heartbeats.
    /// - Parameter server: when the server notices; `nil` for whenever.
    func cut(_ connection: SimulatedConnection, server: Duration?) {
        guard !connection.isCut else { return }
        simulation.trace("broker cut from \(connection.process.name)")
        connection.isCut = true
        simulation.after(server ?? noticing()) { [self] in forget(connection) }
        simulation.after(noticing(), in: connection.process) { connection.tellLost() }
    }

    private func noticing() -> Duration {
        simulation.chance(0.6) ? simulation.duration(0...50) : simulation.duration(0...20_000)
    }

    /// The server gives a connection up: what it held is delivered again.
    func forget(_ connection: SimulatedConnection) {
        guard !connection.isForgotten else { return }
        simulation.trace("broker forgets \(connection.process.name)")
        connection.isCut = true
        connection.isForgotten = true
        connections.removeAll { $0 === connection }
        let held = connection.unacknowledged.sorted { $0.key > $1.key }
        connection.unacknowledged = [:]
        for (_, entry) in held { putBack(entry.message, entry.queue) }
        for queue in Set(held.map(\.value.queue)).sorted() { dispatch(queue) }
    }

    // MARK: Publishing

    /// Takes a message.
    /// - Returns: whether there is a queue for it.
    func route(_ message: AMQPMessage) -> Bool {
        messageCount += 1
        simulation.trace("broker takes \(message.messageID ?? "") for \(message.exchange)")
        let copy = Message(number: messageCount, routingKey: message.routingKey, content: message)
        if message.exchange == Topology.jobs { return enqueue(copy) }
        if let tier = Topology.tiers.first(where: { "gen.retry.v1.\($0.name)" == message.exchange }) {
            copies[message.messageID ?? "", default: 0] += 1
            simulation.after(tier.delay) { [self] in
                copies[message.messageID ?? "", default: 0] -= 1
                _ = enqueue(copy)
            }
            return true
        }
        if message.exchange == Topology.dead {
            dead.append((message.messageID ?? "", message.headers.first { $0.name == "x-gen-reason" }?.value ?? ""))
            return true
        }
        return false
    }

    private func enqueue(_ message: Message) -> Bool {
        let queue = "\(Topology.jobs).\(message.routingKey)"
        guard queues[queue] != nil else { return false }
        copies[message.content.messageID ?? "", default: 0] += 1
        queues[queue]?.append(message)
        dispatch(queue)
        return true
    }

    private func putBack(_ message: Message, _ queue: String) {
        var message = message
        message.isRedelivered = true
        queues[queue]?.insert(message, at: 0)
    }

    // MARK: Consuming

    func add(_ connection: SimulatedConnection) { connections.append(connection) }

    /// Hands messages to consumers that have room, whichever chance picks.
    func dispatch(_ queue: String) {
        guard isUp else { return }
        while let message = queues[queue]?.first {
            let able = connections.flatMap { connection in
                connection.consumers.values.filter {
                    $0.queue == queue && connection.hasRoom(for: $0) && !connection.isForgotten
                }
                .map { (connection, $0) }
            }.sorted { ($0.0.number, $0.1.tag) < ($1.0.number, $1.1.tag) }
            guard let (connection, consumer) = simulation.pick(able) else { return }
            queues[queue]?.removeFirst()
            connection.deliver(message, queue, consumer)
        }
    }

    func acknowledged(_ message: Message) {
        let id = message.content.messageID ?? ""
        copies[id, default: 0] -= 1
        if copies[id] == 0 { onLastCopyGone?(id) }
    }

    func requeued(_ message: Message, _ queue: String) {
        putBack(message, queue)
        dispatch(queue)
    }
}
