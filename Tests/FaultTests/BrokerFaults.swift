import Foundation
import GenShared
import GenTestSupport
import Testing

extension FaultTests {
    /// RabbitMQ itself fails, or says no.
    @Suite("RabbitMQ", .timeLimit(.minutes(5)))
    struct BrokerFaults {
        @Test("F01 RabbitMQ killed with jobs queued and running: confirmed jobs are all there, each is generated once")
        func f01BrokerKilled() async throws {
            try await FaultStage.play("F01") { stage in
                // Not to synchronise: on RabbitMQ 3.10 a queue that was declared in the last seconds before a crash may
                // come back without a leader and answer nobody, which is not what is tested (docs/reliability.md).
                try await stage.setUp()
                try await Task.sleep(for: .seconds(6))
                _ = try await stage.worker(slots: 4, backend: Self.slowEcho)
                let jobs = try await stage.submit(20, pieces: 40)
                try await stage.waitForText(jobs[0])
                stage.note("RabbitMQ killed")
                try await stage.servers.rabbitmq.kill()
                async let late: Void = { _ = try await stage.submit(3, deadline: .seconds(60)) }()
                try await stage.servers.rabbitmq.start()
                try await late
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test(
            "F02 RabbitMQ frozen beyond its heartbeat: the worker notices and connects again, no generation is repeated"
        )
        func f02BrokerFrozen() async throws {
            try await FaultStage.play("F02") { stage in
                let worker = try await stage.worker(slots: 4, backend: Self.slowEcho)
                let jobs = try await stage.submit(12, pieces: 40)
                try await stage.waitForText(jobs[0])
                stage.note("RabbitMQ frozen")
                try await stage.servers.rabbitmq.freeze()
                try await worker.program.waitFor("consumer_lost", within: .seconds(30))
                try await stage.servers.rabbitmq.thaw()
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F03 all connections closed by the operator, three times: work goes on within seconds")
        func f03ConnectionsClosed() async throws {
            try await FaultStage.play("F03") { stage in
                _ = try await stage.worker(slots: 4, backend: Self.slowEcho)
                let jobs = try await stage.submit(20, pieces: 30)
                try await stage.waitForText(jobs[0])
                for _ in 0..<3 { try await stage.servers.rabbitmq.control("close_all_connections", "test") }
                let healed = ContinuousClock.now
                let late = try await stage.submit(1)
                try await stage.waitForEnd(late[0])
                #expect(ContinuousClock.now - healed < .seconds(30))
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F04 RabbitMQ restarted in order, with a worker that starts while it is down")
        func f04BrokerRestarted() async throws {
            try await FaultStage.play("F04") { stage in
                _ = try await stage.worker(slots: 4, backend: Self.slowEcho)
                let jobs = try await stage.submit(12, pieces: 30)
                try await stage.waitForText(jobs[0])
                try await stage.servers.rabbitmq.control("stop_app")
                let second = try await stage.worker(slots: 4, backend: Self.slowEcho, waits: false)
                try await second.program.waitFor("consumer_lost")
                try await stage.servers.rabbitmq.control("start_app")
                try await second.program.waitFor("\"event\":\"ready\"", within: .seconds(40))
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F05 memory alarm: a submission ends by its deadline, running jobs end, and no job is doubled afterwards")
        func f05MemoryAlarm() async throws {
            try await alarm(
                "F05", ["set_vm_memory_high_watermark", "0.00001"], ["set_vm_memory_high_watermark", "0.4"])
        }

        @Test("F06 disk alarm: as with memory")
        func f06DiskAlarm() async throws {
            try await alarm("F06", ["set_disk_free_limit", "99000GB"], ["set_disk_free_limit", "50MB"])
        }

        private func alarm(_ name: String, _ raise: [String], _ lower: [String]) async throws {
            try await FaultStage.play(name) { stage in
                _ = try await stage.worker(slots: 4, backend: Self.slowEcho)
                let jobs = try await stage.submit(12, pieces: 30)
                try await stage.waitForText(jobs[0])
                try await stage.servers.rabbitmq.control(raise[0], raise[1])
                do {
                    let began = ContinuousClock.now
                    // Both are still open: their outcome is unknown, or they were not sent.
                    let blocked = stage.job(100)
                    let outcome = await stage.submit(blocked, deadline: .seconds(4))
                    #expect(ContinuousClock.now - began < .seconds(10))
                    #expect(outcome != .accepted)
                    let shown = try await stage.dispatcher(
                        "submit", "reply", "blocked", "--deadline", "3s", "--pool", stage.pool)
                    #expect(shown.status == 3 || shown.status == 8, "\(shown.errors)")
                    // What runs ends meanwhile: acknowledgements have a connection of their own.
                    try await stage.waitForEnd(jobs[0])
                    try await stage.servers.rabbitmq.control(lower[0], lower[1])
                    if outcome == .unknown { await stage.submit(blocked) }
                } catch {
                    try await stage.servers.rabbitmq.control(lower[0], lower[1])
                    throw error
                }
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test(
            "F07 alarm while a failed job goes to its retry tier: the job is not acknowledged before its copy is safe")
        func f07AlarmDuringRetry() async throws {
            try await FaultStage.play("F07") { stage in
                let failing = try await stage.worker(backend: #"type: "echo", delay: "50ms", failure: "middle""#)
                let jobs = try await stage.submit(2, pieces: 40)
                try await stage.waitForText(jobs[0])
                try await stage.servers.rabbitmq.control("set_vm_memory_high_watermark", "0.00001")
                do {
                    for job in jobs {
                        try await stage.waitFor(job) { if case .retrying = $0.content { true } else { false } }
                    }
                    failing.program.signal(SIGKILL)
                    try await stage.servers.rabbitmq.control("set_vm_memory_high_watermark", "0.4")
                } catch {
                    try await stage.servers.rabbitmq.control("set_vm_memory_high_watermark", "0.4")
                    throw error
                }
                _ = try await stage.worker()
                try await stage.settle(rules: .attempts(3))
            }
        }

        @Test(
            "F08 a queue deleted under its consumer: the worker hears of it, declares it again and serves within seconds"
        )
        func f08QueueDeleted() async throws {
            try await FaultStage.play("F08") { stage in
                _ = try await stage.worker(slots: 4)
                let first = try await stage.submit(4)
                for job in first { try await stage.waitForEnd(job) }
                try await stage.servers.rabbitmq.control(
                    "delete_queue", Topology.queue(pool: stage.pool, lane: .interactive))
                let deleted = ContinuousClock.now
                // Unroutable until it is there again: refused, not lost. Then accepted and run.
                var outcome = HistoryEntry.Submission.refused
                while outcome != .accepted, ContinuousClock.now - deleted < .seconds(20) {
                    outcome = await stage.submit(stage.job(50), deadline: .seconds(2))
                }
                #expect(outcome == .accepted)
                #expect(ContinuousClock.now - deleted < .seconds(8))
                try await stage.settle()
            }
        }

        static let slowEcho = #"type: "echo", delay: "50ms""#
    }
}

extension HistoryChecker.Rules {
    /// As ordinary, with another number of attempts.
    static func attempts(_ number: Int, ends: Set<String> = ["completed", "cancelled"]) -> Self {
        var rules = Self()
        rules.attempts = number
        rules.ends = ends
        return rules
    }

    /// Redis lost data.
    static func lossy(_ attempts: Int) -> Self {
        var rules = Self.attempts(attempts)
        rules.mayLoseHistory = true
        return rules
    }
}
