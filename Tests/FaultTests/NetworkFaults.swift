import Foundation
import GenShared
import GenTestSupport
import Testing

extension FaultTests {
    /// The way to RabbitMQ fails.
    @Suite("Network to RabbitMQ", .timeLimit(.minutes(5)))
    struct NetworkFaults {
        /// A client that goes through the proxies.
        private func client(_ stage: FaultStage) throws -> Client {
            Client(
                amqp: try stage.servers.amqp(port: stage.amqp.port), redis: try stage.servers.redis(),
                name: "fault-test-proxied")
        }

        @Test("F16 the confirm is lost: the submission is sent again under its id and runs once")
        func f16ConfirmLost() async throws {
            try await FaultStage.play("F16") { stage in
                _ = try await stage.worker(throughProxies: false)
                for number in 0..<5 {
                    let client = try client(stage)
                    // The first job opens the connection; nothing that answers the second one gets back.
                    #expect(await stage.submit(stage.job(number), through: client) == .accepted)
                    stage.amqp.set(.discard, .toClient)
                    async let submission = stage.submit(stage.job(number + 100), through: client)
                    let sent = stage.amqp.bytes(.toServer)
                    try await poll(within: .seconds(10)) { stage.amqp.bytes(.toServer) > sent + 200 }
                    stage.amqp.end(.reset)
                    stage.amqp.heal()
                    #expect(await submission == .accepted)
                    await client.close()
                }
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F17 the connection is reset after any number of bytes of a publish: accepted in the end, and run once")
        func f17PublishCut() async throws {
            try await FaultStage.play("F17") { stage in
                _ = try await stage.worker(throughProxies: false)
                // A login takes about 600 bytes to the server, a message about as many again.
                for bytes in stride(from: 8, through: 1400, by: 58) {
                    let client = try client(stage)
                    stage.amqp.cut(.init(.toServer, after: bytes))
                    #expect(await stage.submit(stage.job(bytes), through: client) == .accepted, "\(bytes) bytes")
                    stage.amqp.heal()
                    await client.close()
                }
                for bytes in stride(from: 8, through: 800, by: 66) {
                    let client = try client(stage)
                    stage.amqp.cut(.init(.toClient, after: bytes))
                    #expect(await stage.submit(stage.job(bytes), through: client) == .accepted, "\(bytes) bytes back")
                    stage.amqp.heal()
                    await client.close()
                }
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test(
            "F18 nothing passes any more: a submission ends by its deadline, the worker notices by heartbeat and returns"
        )
        func f18Blackhole() async throws {
            try await FaultStage.play("F18") { stage in
                let worker = try await stage.worker(slots: 4, backend: BrokerFaults.slowEcho)
                let jobs = try await stage.submit(8, pieces: 40)
                try await stage.waitForText(jobs[0])
                stage.amqp.set(.blackhole)
                let began = ContinuousClock.now
                let shown = try await stage.dispatcher(
                    "submit", "reply", "nobody hears", "--deadline", "4s", "--pool", stage.pool)
                #expect(shown.status == 3 || shown.status == 8, "\(shown.errors)")
                #expect(ContinuousClock.now - began < .seconds(15))
                try await worker.program.waitFor("consumer_lost", within: .seconds(30))
                // Jobs that run go on without RabbitMQ.
                try await stage.waitForEnd(jobs[0])
                stage.amqp.heal()
                stage.amqp.end(.reset)
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F19 one direction dies: noticed, nothing is stuck, nothing runs twice", arguments: [0, 1])
        func f19HalfOpen(_ direction: Int) async throws {
            try await FaultStage.play("F19") { stage in
                let worker = try await stage.worker(slots: 4, backend: BrokerFaults.slowEcho)
                let jobs = try await stage.submit(8, pieces: 40)
                try await stage.waitForText(jobs[0])
                stage.amqp.set(.discard, direction == 0 ? .toServer : .toClient)
                try await worker.program.waitFor("consumer_lost", within: .seconds(45))
                stage.amqp.heal()
                stage.amqp.end(.reset)
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F20 a slow broker, 10 kB/s and one byte at a time, is not taken for a dead one", arguments: [0, 1])
        func f20Slow(_ mode: Int) async throws {
            try await FaultStage.play("F20") { stage in
                let worker = try await stage.worker(slots: 4, backend: BrokerFaults.slowEcho)
                stage.amqp.set(mode == 0 ? .throttle(bytesPerSecond: 10_000) : .oneByteAtATime)
                let client = try client(stage)
                try await stage.submit(20, pieces: 20, deadline: .seconds(60), through: client)
                await client.close()
                try await stage.settle(rules: .attempts(1))
                #expect(!worker.program.errors.contains("consumer_lost"))
                #expect(try await worker.program.end() == 0)
            }
        }

        @Test("F21 a server that refuses at first, or does not exist: tried again with growing pauses, a clear end")
        func f21Refuses() async throws {
            try await FaultStage.play("F21") { stage in
                stage.amqp.refuse(true)
                let worker = try await stage.worker(waits: false)
                try await worker.program.waitFor("consumer_lost")
                let shown = try await stage.dispatcher(
                    "submit", "reply", "nobody there", "--deadline", "2s", "--pool", stage.pool)
                #expect(shown.status == 3, "\(shown.errors)")
                let lost = try await stage.dispatcher(
                    "submit", "reply", "no such host", "--deadline", "2s", "--pool", stage.pool,
                    extra: ["GEN_AMQP_URL": "amqp://no-such-host.invalid"])
                #expect(lost.status == 3 && lost.errors.contains("no-such-host.invalid"), "\(lost.errors)")
                let tries = stage.amqp.connections
                #expect(tries < 40, "\(tries) connections")
                stage.amqp.heal()
                try await worker.program.waitFor("\"event\":\"ready\"", within: .seconds(20))
                try await stage.submit(2)
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F21 two hosts, of which the first is dead: worker and submission take the second one within seconds")
        func f21SecondHost() async throws {
            try await FaultStage.play("F21") { stage in
                let dead = "127.0.0.1:1,127.0.0.1:"
                let extra = ["GEN_AMQP_URL": stage.servers.amqpURL.replacing("127.0.0.1:", with: dead)]
                let began = ContinuousClock.now
                _ = try await stage.worker(extra: extra)
                let job = stage.job(1)
                let shown = try await stage.dispatcher(
                    "submit", "reply", job.input.text, "--id", job.id.rawValue, "--pool", stage.pool, "--option",
                    "max_tokens=8000", extra: extra)
                #expect(shown.status == 0, "\(shown.errors)")
                #expect(ContinuousClock.now - began < .seconds(6))
                stage.note(job, .accepted)
                stage.watch(job.id)
                try await stage.settle(rules: .attempts(1))
            }
        }

        enum Lost: CaseIterable { case redis, rabbitmq, both }

        @Test(
            "F65 workers cut off from Redis, from RabbitMQ, from both: no end is lost or doubled, work resumes",
            arguments: Lost.allCases)
        func f65Partition(_ lost: Lost) async throws {
            try await FaultStage.play("F65") { stage in
                _ = try await stage.worker(slots: 8, backend: BrokerFaults.slowEcho)
                let jobs = try await stage.submit(16, pieces: 60)
                try await stage.waitForText(jobs[0])
                if lost != .rabbitmq { stage.redis.set(.blackhole) }
                if lost != .redis { stage.amqp.set(.blackhole) }
                // Not to synchronise: longer than leases and close to two heartbeats is what is tested.
                try await Task.sleep(for: .seconds(15))
                stage.redis.heal()
                stage.amqp.heal()
                try await stage.settle(within: .seconds(120), rules: .attempts(3))
            }
        }

        @Test(
            "F25 connections cut every 2 s for 30 s: work goes on, no attempt is used up, memory and descriptors stay")
        func f25Churn() async throws {
            try await FaultStage.play("F25") { stage in
                let worker = try await stage.worker(slots: 8, backend: BrokerFaults.slowEcho)
                let warm = try await stage.submit(8)
                for job in warm { try await stage.waitForEnd(job) }
                let before = try ProcessFigures(worker.program.processID)
                for turn in 0..<15 {
                    try await stage.submit(4, pieces: 30)
                    stage.amqp.end(turn % 2 == 0 ? .reset : .close)
                    // Not to synchronise: the churn's pace is what is tested.
                    try await Task.sleep(for: .seconds(2))
                }
                let after = try ProcessFigures(worker.program.processID)
                #expect(after.descriptors <= before.descriptors + 4, "\(before) then \(after)")
                #expect(after.residentKilobytes < before.residentKilobytes + 8_000, "\(before) then \(after)")
                #expect(after.threads <= before.threads + 4, "\(before) then \(after)")
                try await stage.settle(rules: .attempts(1))
            }
        }
    }
}

/// Asks again and again until the answer is yes: for what tells nobody when it changes.
func poll(within limit: Duration, _ isDone: () async throws -> Bool) async throws {
    let deadline = ContinuousClock.now + limit
    while try await !isDone() {
        guard ContinuousClock.now < deadline else { throw FaultError("not come to pass within \(limit)") }
        try await Task.sleep(for: .milliseconds(20))
    }
}
