import GenShared
import GenTestSupport
import Synchronization
import Testing

/// The AMQP adapter on a real RabbitMQ.
@Suite("AMQP connection", .timeLimit(.minutes(1)))
struct AMQPConnectionTests {
    init() { ProcessSetup.run() }

    @Test("a message is confirmed, or returned where no queue takes it, also after looking for a queue that is missing")
    func outcomes() async throws {
        let pool = TestEnvironment.uniqueName("a")
        let connection = AMQPConnection(name: "test") { _ in }
        try await connection.open(url: TestEnvironment.amqpURL(), connectionName: "test", confirms: true)
        #expect(try await connection.queueCounts("gen.nothing.\(pool)") == nil)
        _ = try await connection.declare(Topology(pools: [pool]), onlyMissing: true)
        #expect(await connection.publish(message(pool), within: .seconds(10)) == .confirmed)
        guard case .returned(let reason) = await connection.publish(message("no\(pool)"), within: .seconds(10)) else {
            Issue.record("an unroutable message was not returned")
            return
        }
        #expect(reason.contains("NO_ROUTE"))
        #expect(try await connection.queueCounts(Topology.queue(pool: pool, lane: .interactive))?.ready == 1)
        await connection.close()
        guard case .notSent = await connection.publish(message(pool), within: .seconds(1)) else {
            Issue.record("a closed connection took a message")
            return
        }
    }

    @Test("messages that are posted to a connection as it is lost all get an answer")
    func lost() async throws {
        let pool = TestEnvironment.uniqueName("a")
        let connection = AMQPConnection(name: "test") { _ in }
        try await connection.open(url: TestEnvironment.amqpURL(), connectionName: "test", confirms: true)
        _ = try await connection.declare(Topology(pools: [pool]), onlyMissing: true)
        let message = message(pool)
        var poison = message
        // Longer than a short string of AMQP can be: the library refuses it, and the connection is of no use then.
        poison.messageID = String(repeating: "x", count: 300)
        let outcomes = await withTaskGroup(of: PublishOutcome.self) { group in
            for number in 0..<64 {
                group.addTask { [poison] in
                    await connection.publish(number == 5 ? poison : message, within: .seconds(5))
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
        #expect(outcomes.count == 64 && outcomes.contains { $0 != .confirmed })
    }

    @Test("each delivery comes once, in order, byte for byte, and an unacknowledged one comes again")
    func deliveries() async throws {
        let pool = TestEnvironment.uniqueName("a")
        let queue = Topology.queue(pool: pool, lane: .interactive)
        let publisher = AMQPConnection(name: "test") { _ in }
        try await publisher.open(url: TestEnvironment.amqpURL(), connectionName: "test", confirms: true)
        _ = try await publisher.declare(Topology(pools: [pool]), onlyMissing: true)
        // Empty, one byte, more than one frame.
        let bodies = [0, 1, 300_000].map { [UInt8](repeating: 0x61, count: $0) }
        for body in bodies {
            var message = message(pool)
            message.body = body
            #expect(await publisher.publish(message, within: .seconds(10)) == .confirmed)
        }
        let first = try await consume(queue, count: 3, acknowledges: false)
        #expect(first.map(\.body) == bodies && first.allSatisfy { $0.messageID == "m" && $0.type == "slogan" })
        let second = try await consume(queue, count: 3, acknowledges: true)
        #expect(second.map(\.body) == bodies)
        #expect(try await publisher.queueCounts(queue)?.ready == 0)
        await publisher.close()
    }

    @Test("a wrong password is unauthorized, a dead port unreachable, and both say where")
    func refusals() async throws {
        var url = try TestEnvironment.amqpURL()
        url.password = Secret("hunter2")
        for (url, code) in [(url, AMQPError.Code.unauthorized), (try AMQPURL("amqp://127.0.0.1:1"), .unreachable)] {
            let connection = AMQPConnection(name: "test") { _ in }
            do {
                try await connection.open(url: url, connectionName: "test", confirms: false)
                Issue.record("connected")
            } catch {
                #expect(error.code == code && error.message.contains(url.place) && !error.message.contains("hunter2"))
            }
        }
    }

    @Test("declaring a topology twice changes nothing")
    func declaredTwice() async throws {
        let pool = TestEnvironment.uniqueName("a")
        let connection = AMQPConnection(name: "test") { _ in }
        try await connection.open(url: TestEnvironment.amqpURL(), connectionName: "test", confirms: false)
        _ = try await connection.declare(Topology(pools: [pool]), onlyMissing: false)
        _ = try await connection.declare(Topology(pools: [pool]), onlyMissing: false)
        await connection.close()
    }

    private func message(_ pool: String) -> AMQPMessage {
        AMQPMessage(
            exchange: Topology.jobs, routingKey: "\(pool).interactive", body: [0x7B, 0x7D], messageID: "m",
            type: "slogan")
    }

    private func consume(_ queue: String, count: Int, acknowledges: Bool) async throws -> [AMQPDelivery] {
        let (deliveries, delivery) = AsyncStream.makeStream(of: AMQPDelivery.self)
        let connection = AMQPConnection(name: "test") { event in
            if case .delivery(let arrived) = event { delivery.yield(arrived) }
        }
        try await connection.open(url: TestEnvironment.amqpURL(), connectionName: "test", confirms: false)
        try await connection.consume(queue: queue, tag: "test", prefetch: 10)
        var seen: [AMQPDelivery] = []
        for await arrived in deliveries {
            seen.append(arrived)
            if acknowledges { connection.acknowledge(arrived.tag) }
            if seen.count == count { break }
        }
        await connection.close()
        return seen
    }
}
