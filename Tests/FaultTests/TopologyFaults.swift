import Foundation
import GenShared
import GenTestSupport
import Testing

extension FaultTests {
    /// RabbitMQ is not as it should be: exchanges, bindings and queues are gone or other ones, limits and rights
    /// are set.
    @Suite("Topology", .timeLimit(.minutes(8)))
    struct TopologyFaults {
        @Test("F09 the jobs exchange deleted: a submission fails and says what to do; after setup it works again")
        func f09ExchangeDeleted() async throws {
            try await FaultStage.play("F09") { stage in
                try await stage.setUp()
                try await PikaClient(stage.servers).run("channel.exchange_delete('\(Topology.jobs)')")
                do {
                    let shown = try await stage.dispatcher(
                        "submit", "reply", "nowhere", "--deadline", "3s", "--pool", stage.pool)
                    #expect([3, 5, 8].contains(shown.status), "\(shown.status): \(shown.errors)")
                    #expect(shown.errors.contains("setup") || shown.errors.contains("no exchange"), "\(shown.errors)")
                } catch {
                    try await stage.setUp()
                    throw error
                }
                try await stage.setUp()
                _ = try await stage.worker()
                try await stage.submit(2)
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F10 a binding removed: the message is returned, the submission refused with exit 5, the record says so")
        func f10BindingRemoved() async throws {
            try await FaultStage.play("F10") { stage in
                try await stage.setUp()
                let (queue, key) = (
                    Topology.queue(pool: stage.pool, lane: .interactive),
                    Topology.routingKey(pool: stage.pool, lane: .interactive)
                )
                try await PikaClient(stage.servers).run(
                    "channel.queue_unbind('\(queue)', '\(Topology.jobs)', '\(key)')")
                let job = stage.job(1)
                let shown = try await stage.dispatcher(
                    "submit", "reply", job.input.text, "--id", job.id.rawValue, "--pool", stage.pool)
                #expect(shown.status == 5 && shown.errors.contains("no queue takes jobs"), "\(shown.errors)")
                stage.note(job, .refused)
                guard case .failed(let failure, _)? = try await stage.record(job.id).ending else {
                    throw FaultError("the record of a refused job does not say so")
                }
                #expect(failure.code == .rejected)
                try await stage.setUp()
                _ = try await stage.worker()
                try await stage.submit(2)
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F11 a queue that exists with other arguments: setup fails with RabbitMQ's words and deletes nothing")
        func f11OtherArguments() async throws {
            try await FaultStage.play("F11") { stage in
                let queue = Topology.queue(pool: stage.pool, lane: .interactive)
                let pika = PikaClient(stage.servers)
                try await pika.run(
                    "channel.queue_declare('\(queue)', durable=True)",
                    "channel.basic_publish('', '\(queue)', b'{}')")
                let shown = try await stage.dispatcher("setup", "--pool", stage.pool)
                #expect(shown.status != 0 && shown.errors.contains(queue), "\(shown.status): \(shown.errors)")
                #expect(try await stage.messages(in: queue) == 1)
                try await pika.run("channel.queue_delete('\(queue)')")
                #expect(try await stage.dispatcher("setup", "--pool", stage.pool).status == 0)
            }
        }

        @Test("F12 the acknowledgement timeout strikes: the generation is not repeated, its copy is thrown away")
        func f12AcknowledgementTimeout() async throws {
            try await FaultStage.play("F12") { stage in
                let rabbitmq = stage.servers.rabbitmq
                func set(_ timeout: Int, _ tick: Int) async throws {
                    try await rabbitmq.control(
                        "eval",
                        "application:set_env(rabbit, consumer_timeout, \(timeout)), "
                            + "application:set_env(rabbit, channel_tick_interval, \(tick)).")
                }
                try await set(4000, 1000)
                do {
                    let worker = try await stage.worker(slots: 2, backend: #"type: "echo", delay: "100ms""#)
                    let jobs = try await stage.submit(2, pieces: 120)
                    for job in jobs { try await stage.waitForEnd(job) }
                    // From 3.12 on the queue's own two hours win over the server's setting.
                    let strikes = worker.program.errors.split(separator: "consumer_lost").count - 1
                    print("figure: F12 the timeout struck \(strikes) times")
                } catch {
                    try await set(7_200_000, 60_000)
                    throw error
                }
                try await set(7_200_000, 60_000)
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F14 a message over its delivery limit goes to dropped and dead, and its job ends as failed")
        func f14DeliveryLimit() async throws {
            try await FaultStage.play("F14") { stage in
                let job = try await giveUp(stage)
                _ = try await stage.worker()
                try await poll(within: .seconds(60)) { try await stage.record(job).state == .failed }
                guard case .failed(let failure, _)? = try await stage.record(job).ending else { return }
                #expect(failure.code == .dropped)
                try await stage.settle(rules: .attempts(0, ends: ["failed"]))
            }
        }

        /// Makes RabbitMQ give up on a job: its connection is lost with each delivery, which counts on every version.
        private func giveUp(_ stage: FaultStage, takesDropped: Bool = true) async throws -> JobID {
            let policy = "limit-\(stage.pool)"
            try await stage.setUp()
            if !takesDropped {
                try await PikaClient(stage.servers).run("channel.exchange_delete('\(Topology.dropped)')")
            }
            let queue = Topology.queue(pool: stage.pool, lane: .interactive)
            try await stage.servers.rabbitmq.control(
                "set_policy", policy, "^\(queue)$", #"{"delivery-limit":1}"#, "--apply-to", "queues")
            let job = stage.job(1)
            try await stage.client.submit(job)
            stage.note(job.id, .accepted, expected: nil)
            for _ in 0..<2 {
                let (deliveries, delivery) = AsyncStream.makeStream(of: AMQPDelivery.self)
                let connection = AMQPConnection(name: "fault-loser") { event in
                    if case .delivery(let arrived) = event { delivery.yield(arrived) }
                }
                try await connection.open(url: try stage.servers.amqp(), connectionName: "loser", confirms: false)
                try await connection.consume(queue: queue, tag: "loser", prefetch: 1)
                for await _ in deliveries { break }
                await connection.close()
            }
            // Given up as soon as it comes back for the second time. Where nothing takes it, passive counts show 0, too.
            try await poll(within: .seconds(10)) { try await stage.messages(in: queue) == 0 }
            try await stage.servers.rabbitmq.control("clear_policy", policy)
            return job.id
        }

        @Test("F15 a full queue: the submission is refused with exit 5 and says so, and the job never runs")
        func f15QueueFull() async throws {
            try await FaultStage.play("F15") { stage in
                let policy = "full-\(stage.pool)"
                try await stage.setUp()
                let queue = Topology.queue(pool: stage.pool, lane: .interactive)
                try await stage.servers.rabbitmq.control(
                    "set_policy", policy, "^\(queue)$", #"{"max-length":2}"#, "--apply-to", "queues")
                var refused = 0
                for number in 0..<8 {
                    let job = stage.job(number)
                    let shown = try await stage.dispatcher(
                        "submit", "reply", job.input.text, "--id", job.id.rawValue, "--pool", stage.pool,
                        "--option", "max_tokens=8000")
                    #expect([0, 5].contains(shown.status), "\(shown.errors)")
                    if shown.status == 5 {
                        refused += 1
                        #expect(shown.errors.contains("full"), "\(shown.errors)")
                    }
                    stage.note(job, shown.status == 0 ? .accepted : .refused)
                    if shown.status == 0 { stage.watch(job.id) }
                }
                #expect(refused >= 4, "\(refused) of 8 were refused at a length of 2")
                try await stage.servers.rabbitmq.control("clear_policy", policy)
                _ = try await stage.worker()
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F22 the password changes while all run: a clear error, one try in 5 s, and back when it is right again")
        func f22PasswordChanged() async throws {
            try await FaultStage.play("F22") { stage in
                let rabbitmq = stage.servers.rabbitmq
                let password = try stage.servers.amqp().password.reveal()
                let worker = try await stage.worker()
                let tries: Int
                try await rabbitmq.control("change_password", "gencluster", "another")
                do {
                    try await rabbitmq.control("close_all_connections", "test")
                    try await worker.program.waitFor("consumer_lost")
                    let before = stage.amqp.connections
                    // Not to synchronise: the rate of tries is what is measured.
                    try await Task.sleep(for: .seconds(11))
                    tries = stage.amqp.connections - before
                    let shown = try await stage.dispatcher(
                        "submit", "reply", "who am I", "--deadline", "5s", "--pool", stage.pool)
                    #expect(shown.status == 3 && shown.errors.contains("refuses user"), "\(shown.errors)")
                    #expect(!shown.errors.contains(password))
                } catch {
                    try await rabbitmq.control("change_password", "gencluster", password)
                    throw error
                }
                try await rabbitmq.control("change_password", "gencluster", password)
                #expect(tries <= 4, "\(tries) tries in 11 s")
                try await stage.submit(2)
                try await stage.settle(within: .seconds(30), rules: .attempts(1))
            }
        }

        @Test("F23 no exchange takes what RabbitMQ gives up on: it is kept, and handed over once the exchange is back")
        func f23DeadLetterTargetMissing() async throws {
            try await FaultStage.play("F23") { stage in
                let job: JobID
                do {
                    job = try await giveUp(stage, takesDropped: false)
                    // Not to synchronise: the hand-over must have been tried, and failed.
                    try await Task.sleep(for: .seconds(5))
                    try await stage.setUp()
                } catch {
                    try await stage.setUp()
                    throw error
                }
                let back = ContinuousClock.now
                _ = try await stage.worker()
                // RabbitMQ tries such a hand-over again every 180 s.
                try await poll(within: .seconds(240)) { try await stage.record(job).state == .failed }
                print("figure: F23 handed over \(Int((.now - back) / .seconds(1))) s after the exchange was back")
                try await stage.settle(rules: .attempts(0, ends: ["failed"]))
            }
        }

        @Test("F24 5,000 messages leave a retry tier at once: each job runs once, the worker's memory stays bounded")
        func f24ExpiryStorm() async throws {
            try await FaultStage.play("F24") { stage in
                let worker = try await stage.worker(slots: 64)
                let connection = AMQPConnection(name: "fault-storm") { _ in }
                try await connection.open(url: try stage.servers.amqp(), connectionName: "storm", confirms: true)
                let jobs = (0..<5000).map { stage.job($0, pieces: 5) }
                let key = Topology.routingKey(pool: stage.pool, lane: .interactive)
                await withTaskGroup(of: Void.self) { group in
                    for job in jobs {
                        group.addTask {
                            let message = AMQPMessage(
                                exchange: Topology.tier(for: .seconds(2)), routingKey: key, body: job.body,
                                messageID: job.id.rawValue, type: job.kind.rawValue)
                            let outcome = await connection.publish(message, within: .seconds(60))
                            stage.note(job, outcome == .confirmed ? .accepted : .unknown)
                        }
                    }
                }
                await connection.close()
                for job in jobs.reversed() {
                    try await poll(within: .seconds(120)) {
                        try await stage.client.record(job.id)?.state == .completed
                    }
                }
                let figures = try ProcessFigures(worker.program.processID)
                print("figure: F24 worker after 5,000 jobs at once: \(figures)")
                #expect(figures.residentKilobytes < 60_000)
                try await stage.settle(rules: .attempts(1))
            }
        }
    }
}
