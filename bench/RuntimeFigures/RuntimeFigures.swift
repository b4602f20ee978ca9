import GenShared
import Glibc
import Synchronization

/// Measures the pinned-actor runtime on real servers: the figures of design section 8 beside ours.
///
///     eval "$(ops/env)" && swift run -c release RuntimeFigures
@main
struct RuntimeFigures {
    static func main() async throws {
        ProcessSetup.run()
        func variable(_ name: String) -> String { getenv(name).map { String(cString: $0) } ?? "" }
        let amqp = try AMQPURL(variable("GEN_AMQP_URL"))
        let redis = try RedisURL(variable("GEN_REDIS_URL"))
        for round in 1...5 {
            print("round \(round)")
            try await broker(amqp)
            try await publishes(redis)
        }
    }

    /// Confirmed publishes to a quorum queue, then deliveries with their acks.
    static func broker(_ url: AMQPURL) async throws {
        let pool = "figures\(UInt32.random(in: 0 ... .max))"
        let queue = Topology.queue(pool: pool, lane: .interactive)
        let publisher = AMQPConnection(name: "figures") { _ in }
        try await publisher.open(url: url, connectionName: "figures", confirms: true)
        _ = try await publisher.declare(Topology(pools: [pool]), onlyMissing: true)
        let body = Job(id: JobID(atMilliseconds: 0), kind: .slogan, input: JobInput(text: "coffee shop")).body
        let message = AMQPMessage(
            exchange: Topology.jobs, routingKey: "\(pool).interactive", body: body, messageID: "figures", type: "slogan"
        )
        for (tasks, count) in [(1, 500), (64, 20_000), (1000, 20_000)] {
            let rate = await perSecond(count) {
                await withTaskGroup(of: Void.self) { group in
                    for _ in 0..<tasks {
                        group.addTask {
                            for _ in 0..<(count / tasks) {
                                let outcome = await publisher.publish(message, within: .seconds(30))
                                if outcome != .confirmed { fatal("publish \(tasks): \(outcome)") }
                            }
                        }
                    }
                }
            }
            print("  confirmed publishes/s to a quorum queue, \(tasks) tasks: \(rate)")
        }
        try await deliveries(url, queue, count: 40_000)
        await publisher.close()
    }

    private static func deliveries(_ url: AMQPURL, _ queue: String, count: Int) async throws {
        let seen = Atomic(0)
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        let reference = Mutex<AMQPConnection?>(nil)
        let consumer = AMQPConnection(name: "figures") { event in
            guard case .delivery(let delivery) = event else { return }
            reference.withLock { $0 }?.acknowledge(delivery.tag)
            if seen.add(1, ordering: .relaxed).newValue == count { end.yield() }
        }
        reference.withLock { $0 = consumer }
        try await consumer.open(url: url, connectionName: "figures", confirms: false)
        let began = ContinuousClock.now
        try await consumer.consume(queue: queue, tag: "figures", prefetch: 256)
        for await _ in ends { break }
        print("  deliver+ack/s at prefetch 256: \(rate(count, since: began))")
        await consumer.close()
        reference.withLock { $0 = nil }
    }

    static func publishes(_ url: RedisURL) async throws {
        let connection = RedisConnection(url: url, name: "figures")
        _ = try await connection.send(RedisCommand("PING"))
        let count = 512_000
        let rate = try await perSecond(count) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<256 {
                    group.addTask {
                        for _ in 0..<(count / 256) {
                            _ = try await connection.send(RedisCommand("PUBLISH", "figures", "a piece of text"))
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
        print("  PUBLISH/s, 256 tasks: \(rate)")
        await connection.close()
    }

    private static func perSecond(_ count: Int, _ body: () async throws -> Void) async rethrows -> Int {
        let began = ContinuousClock.now
        try await body()
        return rate(count, since: began)
    }

    private static func rate(_ count: Int, since began: ContinuousClock.Instant) -> Int {
        Int(Double(count) / ((ContinuousClock.now - began) / .seconds(1)))
    }

    private static func fatal(_ message: String) -> Never {
        Terminal.writeError(message)
        exit(1)
    }
}
