import GenShared

/// Keeps the worker's consuming connection: connects, checks the topology, hands deliveries to the pools, and does it
/// all again after a loss.
struct ConsumerLink: Sendable {
    let url: AMQPURL
    let name: String
    let pools: [PoolRunner]
    /// Told each time the worker begins to consume.
    let onReady: @Sendable () -> Void

    /// Runs until its task is cancelled.
    func run() async {
        var backoff = Backoff(first: .milliseconds(200), limit: .seconds(15))
        while !Task.isCancelled {
            do {
                try await session { backoff.reset() }
                return
            } catch {
                for pool in pools { pool.post(.disconnected) }
                let pause = error.code == .unauthorized ? .seconds(5) : backoff.next()
                Log.error(
                    "consumer_lost",
                    ["reason": .string(error.message), "retry_ms": .integer(Int64(pause.milliseconds))])
                do { try await Task.sleep(for: pause) } catch { return }
            }
        }
    }

    /// One connection from its making to its loss; returns when the task is cancelled.
    private func session(_ onConnect: () -> Void) async throws(AMQPError) {
        let (losses, loss) = AsyncStream.makeStream(of: AMQPError.self, bufferingPolicy: .bufferingNewest(1))
        let origin = ConnectionReference()
        let connection = AMQPConnection(name: "amqp-consume") { event in
            switch event {
            case .delivery(let delivery): origin.connection.map { hand(delivery, from: $0) }
            case .consumerCancelled(let tag): withLane(of: tag) { $0.post(.consumerCancelled($1)) }
            case .lost(let error): loss.yield(error)
            case .blocked, .unblocked: break
            }
        }
        origin.set(connection)
        try await connection.open(url: url, connectionName: name, confirms: false)
        let declared = try await connection.declare(Topology(pools: pools.map(\.name)), onlyMissing: true)
        if !declared.isEmpty { Log.info("topology_declared", ["names": .array(declared.map(JSONValue.string))]) }
        onConnect()
        for pool in pools { pool.post(.connected(connection)) }
        onReady()
        for await error in losses { throw error }
        // Cancelled: the pools have requeued and acknowledged what they had.
        await connection.close()
    }

    private func hand(_ delivery: AMQPDelivery, from connection: AMQPConnection) {
        withLane(of: delivery.consumer) { $0.post(.delivery(delivery, $1, connection)) }
    }

    private func withLane(of tag: String, _ body: (PoolRunner, Lane) -> Void) {
        for pool in pools {
            for lane in Lane.allCases where pool.consumerTag(lane) == tag { return body(pool, lane) }
        }
    }
}
