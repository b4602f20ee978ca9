import GenShared

/// Keeps the worker's consuming connection: connects, checks the topology, hands deliveries on, and does it all again
/// after a loss.
struct ConsumerLink: Sendable {
    let connector: any ConsumerConnector
    let pools: [PoolRunner]
    let dropped: DroppedConsumer
    let readiness: Readiness
    var scheduler: any Scheduler = SystemScheduler()

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
            let began = scheduler.now
            do {
                try await session()
                return
            } catch {
                readiness.lost(error.message)
                for pool in pools { pool.post(.disconnected) }
                if scheduler.now - began > Self.proven { backoff.reset() }
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
    private func session() async throws(AMQPError) {
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
        do throws(AMQPError) {
            let declared = try await connection.declare(Topology(pools: pools.map(\.name)), onlyMissing: true)
            if !declared.isEmpty { Log.info("topology_declared", ["names": .array(declared.map(JSONValue.string))]) }
            try await dropped.attach(to: connection)
        } catch {
            await connection.close()
            throw error
        }
        for pool in pools { pool.post(.connected(connection)) }
        for await error in losses { throw error }
        // Cancelled: the pools have requeued and acknowledged what they had.
        await connection.close()
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

extension AMQPError {
    /// Whether RabbitMQ understood us well and said no.
    fileprivate var isRefusal: Bool {
        switch code {
        case .unauthorized, .refused: true
        default: false
        }
    }
}
