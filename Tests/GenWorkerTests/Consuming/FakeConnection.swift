import GenShared
import GenTestSupport
import Synchronization

@testable import GenWorker

/// A consuming connection that keeps what was asked of it, and fails as a test says.
final class FakeConnection: ConsumerConnection {
    enum Call: Hashable, Sendable {
        case acknowledge(UInt64)
        case requeue(UInt64)
        case consume(String, prefetch: Int)
        case cancel(String)
        case declare
        case close
    }

    /// What was asked, in order.
    let calls = Journal<Call>()
    private let listener: AMQPConnection.Listener
    private let refuses: @Sendable (Call) -> Bool
    private let before: (@Sendable (Call) -> Void)?
    private let isLost = Atomic(false)

    /// - Parameters:
    ///   - refuses: calls that fail and take the connection along.
    ///   - before: happens before each call.
    init(
        refuses: @escaping @Sendable (Call) -> Bool = { _ in false }, before: (@Sendable (Call) -> Void)? = nil,
        listener: @escaping AMQPConnection.Listener = { _ in }
    ) {
        self.refuses = refuses
        self.before = before
        self.listener = listener
    }

    /// The tags that are consumed now.
    var consumers: Set<String> {
        calls.elements.reduce(into: []) { tags, call in
            switch call {
            case .consume(let tag, _): tags.insert(tag)
            case .cancel(let tag): tags.remove(tag)
            case .acknowledge, .requeue, .declare, .close: break
            }
        }
    }

    /// RabbitMQ hands a message to a consumer.
    func deliver(_ delivery: AMQPDelivery) { listener(.delivery(delivery)) }
    /// RabbitMQ ends a consumer.
    func endConsumer(_ tag: String) { listener(.consumerCancelled(tag)) }

    func lose(_ error: AMQPError = AMQPError(.connectionLost, "lost")) {
        if !isLost.exchange(true, ordering: .sequentiallyConsistent) { listener(.lost(error)) }
    }

    func acknowledge(_ tag: UInt64) { note(.acknowledge(tag)) }
    func requeue(_ tag: UInt64) { note(.requeue(tag)) }

    func consume(queue: String, tag: String, prefetch: Int) async throws(AMQPError) {
        try call(.consume(tag, prefetch: prefetch))
    }

    func cancelConsumer(tag: String) async throws(AMQPError) { try call(.cancel(tag)) }

    func declare(_ topology: Topology, onlyMissing: Bool) async throws(AMQPError) -> [String] {
        try call(.declare)
        return []
    }

    func close() async { note(.close) }

    private func note(_ call: Call) {
        before?(call)
        calls.append(call)
    }

    private func call(_ call: Call) throws(AMQPError) {
        note(call)
        if refuses(call) {
            let error = AMQPError(.refused(404), "\(call) is refused")
            lose(error)
            throw error
        }
        if isLost.load(ordering: .sequentiallyConsistent) { throw AMQPError(.connectionLost, "\(call) failed") }
    }
}

/// Makes fake connections, each as a test says, and keeps when it was asked for one.
final class FakeConnector: ConsumerConnector {
    enum Plan: Sendable {
        /// No connection, after that time.
        case fail(AMQPError, after: Duration = .zero)
        /// A connection that is lost after that time.
        case live(Duration)
        /// A connection that lives on, but for what it refuses.
        case serve(refuses: @Sendable (FakeConnection.Call) -> Bool = { _ in false })
    }

    /// When a connection was asked for.
    let attempts = Journal<Duration>()
    /// The connections that were made.
    let connections = Journal<FakeConnection>()
    /// What was asked of any of them, and when.
    let calls = Journal<(call: FakeConnection.Call, at: Duration)>()
    private let scheduler: ManualScheduler
    private let plan: @Sendable (Int) -> Plan

    /// - Parameter plan: what becomes of each attempt, by its number from 0 on.
    init(_ scheduler: ManualScheduler, _ plan: @escaping @Sendable (Int) -> Plan) {
        self.scheduler = scheduler
        self.plan = plan
    }

    func connect(listener: @escaping AMQPConnection.Listener) async throws(AMQPError) -> any ConsumerConnection {
        let number = attempts.count
        attempts.append(scheduler.elapsed)
        var refuses: @Sendable (FakeConnection.Call) -> Bool = { _ in false }
        var life: Duration?
        switch plan(number) {
        case .fail(let error, let delay):
            await scheduler.sleepUncancelled(for: delay)
            throw error
        case .live(let duration): life = duration
        case .serve(let calls): refuses = calls
        }
        let connection = FakeConnection(
            refuses: refuses, before: { [calls, scheduler] in calls.append(($0, scheduler.elapsed)) },
            listener: listener)
        connections.append(connection)
        if let life {
            scheduler.start { [scheduler] in
                await scheduler.sleepUncancelled(for: life)
                connection.lose()
            }
        }
        return connection
    }

    /// The pauses between the attempts.
    var pauses: [Duration] {
        let times = attempts.elements
        return zip(times, times.dropFirst()).map { $1 - $0 }
    }
}
