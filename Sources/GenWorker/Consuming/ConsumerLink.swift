import GenShared
import Synchronization

/// Keeps the worker's consuming connection: connects, checks the topology, hands deliveries on, and does it all again
/// after a loss.
struct ConsumerLink: Sendable {
    let connector: any ConsumerConnector
    let pools: [PoolRunner]
    let dropped: DroppedConsumer
    let readiness: Readiness
    private let scheduler: any Scheduler
    private let forbidden = Forbidden()

    init(
        connector: any ConsumerConnector, pools: [PoolRunner], dropped: DroppedConsumer, readiness: Readiness,
        scheduler: any Scheduler = SystemScheduler()
    ) {
        self.connector = connector
        self.pools = pools
        self.dropped = dropped
        self.readiness = readiness
        self.scheduler = scheduler
    }

    /// A connection that lived that long was a good one: the next try may come soon after its loss.
    ///
    /// One that is lost as soon as it is made must not be made again at once, however well its making went.
    private static let proven: Duration = .seconds(10)
    /// What the broker refuses it will refuse again until somebody has changed something.
    private static let refusedPause: Duration = .seconds(5)

    /// Runs until its task is cancelled.
    func run() async {
        var backoff = Backoff(first: .milliseconds(200), limit: .seconds(15))
        while !Task.isCancelled {
            var connected: ContinuousClock.Instant?
            do {
                try await session { connected = $0 }
                return
            } catch {
                readiness.lost(error.message)
                for pool in pools { pool.post(.disconnected) }
                // Counted from when it was there: a host that is away may take longer than that to be given up.
                if let connected, scheduler.now - connected > Self.proven { backoff.reset() }
                var pause = backoff.next(on: scheduler)
                if error.isRefusal { pause = max(pause, Self.refusedPause) }
                Log.error(
                    "consumer_lost",
                    ["reason": .string(error.message), "retry_ms": .integer(Int64(pause.milliseconds))])
                do { try await scheduler.sleep(for: pause) } catch { return }
            }
        }
    }

    /// One connection from its making to its loss; returns when the task is cancelled.
    /// - Parameter onConnect: told when the connection is there.
    private func session(onConnect: (ContinuousClock.Instant) -> Void) async throws(AMQPError) {
        let (losses, loss) = AsyncStream.makeStream(of: AMQPError.self, bufferingPolicy: .bufferingNewest(1))
        let origin = ConnectionReference()
        let connection = try await connector.connect { event in
            switch event {
            case .delivery(let delivery): origin.connection.map { hand(delivery, from: $0) }
            case .consumerCancelled(let tag): cancelled(tag)
            case .lost(let error): loss.yield(error)
            case .blocked, .unblocked: break  // Acks and requeues go through a blocked connection.
            }
        }
        origin.set(connection)
        onConnect(scheduler.now)
        do throws(AMQPError) {
            try await prepare(connection)
        } catch {
            await connection.close()
            throw error
        }
        for pool in pools { pool.post(.connected(connection)) }
        for await error in losses { throw error }
        // Cancelled: the pools have requeued and acknowledged what they had.
        await connection.close()
    }

    /// Declares what is missing and attaches to the queue of what RabbitMQ gave up on, as far as our user may.
    ///
    /// What it may not costs this connection, is told, and is left out on the next: lanes can be served all the same.
    private func prepare(_ connection: any ConsumerConnection) async throws(AMQPError) {
        try await unlessForbidden("declaring missing queues") { () throws(AMQPError) in
            let declared = try await connection.declare(Topology(pools: pools.map(\.name)), onlyMissing: true)
            if !declared.isEmpty { Log.info("topology_declared", ["names": .array(declared.map(JSONValue.string))]) }
        }
        try await unlessForbidden("consuming \(Topology.dropped)") { () throws(AMQPError) in
            try await dropped.attach(to: connection)
        }
    }

    private func unlessForbidden(
        _ what: String, _ body: () async throws(AMQPError) -> Void
    ) async throws(AMQPError) {
        guard !forbidden.contains(what) else { return }
        do throws(AMQPError) { try await body() } catch {
            if error.code == .refused(403) {
                forbidden.insert(what)
                Log.error("not_permitted", ["what": .string(what), "reason": .string(error.message)])
            }
            throw error
        }
    }

    private func hand(_ delivery: AMQPDelivery, from connection: any ConsumerConnection) {
        if delivery.consumer == DroppedConsumer.tag { return dropped.take(delivery, from: connection) }
        withLane(of: delivery.consumer) { $0.post(.delivery(delivery, $1, connection)) }
    }

    private func cancelled(_ tag: String) {
        if tag == DroppedConsumer.tag { return dropped.cancelled() }
        withLane(of: tag) { $0.post(.consumerCancelled($1)) }
    }

    private func withLane(of tag: String, _ body: (PoolRunner, Lane) -> Void) {
        for pool in pools {
            for lane in Lane.allCases where pool.consumerTag(lane) == tag { return body(pool, lane) }
        }
    }
}

/// What the broker has not let us do; a restart of the worker asks again.
private final class Forbidden: Sendable {
    private let state = Mutex<Set<String>>([])

    func contains(_ what: String) -> Bool { state.withLock { $0.contains(what) } }
    func insert(_ what: String) { state.withLock { _ = $0.insert(what) } }
}

extension AMQPError {
    /// Whether RabbitMQ understood us well and said no.
    fileprivate var isRefusal: Bool {
        switch code {
        case .unauthorized, .refused: true
        default: false
        }
    }
}
