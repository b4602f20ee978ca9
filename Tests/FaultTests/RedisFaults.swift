import Foundation
import GenShared
import GenTestSupport
import Testing

extension FaultTests {
    /// Redis itself fails, or forgets.
    @Suite("Redis", .timeLimit(.minutes(5)))
    struct RedisFaults {
        @Test("F26 Redis killed and started again: running jobs keep their text until it is back, no attempt is added")
        func f26RedisKilled() async throws {
            try await FaultStage.play("F26") { stage in
                _ = try await stage.worker(slots: 4, backend: BrokerFaults.slowEcho)
                let jobs = try await stage.submit(8, pieces: 60)
                try await stage.waitForText(jobs[0])
                try await stage.servers.redis.kill()
                try await stage.servers.redis.start()
                let late = try await stage.submit(2)
                try await stage.waitForEnd(late[0])
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F27 Redis frozen beyond the leases: the owner goes on or is fenced, no job has two ends")
        func f27RedisFrozen() async throws {
            try await FaultStage.play("F27") { stage in
                _ = try await stage.worker(slots: 4, backend: BrokerFaults.slowEcho)
                _ = try await stage.worker(slots: 4, backend: BrokerFaults.slowEcho)
                let jobs = try await stage.submit(16, pieces: 60)
                try await stage.waitForText(jobs[0])
                try await stage.servers.redis.freeze()
                // Not to synchronise: longer than a lease of 6 s is what is tested.
                try await Task.sleep(for: .seconds(12))
                try await stage.servers.redis.thaw()
                try await stage.settle(rules: .attempts(3))
            }
        }

        @Test("F28 all clients of Redis killed again and again, subscribers too: no gap, no double, no attempt added")
        func f28ClientsKilled() async throws {
            try await FaultStage.play("F28") { stage in
                _ = try await stage.worker(slots: 8, backend: BrokerFaults.slowEcho)
                let jobs = try await stage.submit(16, pieces: 60)
                try await stage.waitForText(jobs[0])
                for turn in 0..<12 {
                    try await stage.servers.redis.control(
                        "CLIENT", "KILL", "TYPE", turn % 2 == 0 ? "normal" : "pubsub")
                    for job in jobs { stage.watch(job) }
                }
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F29 Redis busy for 5 s, asleep or in a script: calls end in time, no reply is taken for another's")
        func f29Busy() async throws {
            try await FaultStage.play("F29") { stage in
                _ = try await stage.worker(slots: 4, backend: BrokerFaults.slowEcho)
                let jobs = try await stage.submit(8, pieces: 60)
                try await stage.waitForText(jobs[0])
                try await stage.servers.redis.control("DEBUG", "SLEEP", "5")
                async let busy = stage.servers.redis.control("EVAL", "while true do end", "0")
                // Not to synchronise: the time in which Redis answers BUSY is what is tested.
                try await Task.sleep(for: .seconds(8))
                try await stage.servers.redis.control("SCRIPT", "KILL")
                _ = try? await busy  // It ends with an error: it was killed.
                try await stage.settle(rules: .attempts(3))
            }
        }

        @Test("F30 Redis full: nothing is acknowledged that is not stored, and work goes on when there is room")
        func f30Full() async throws {
            try await FaultStage.play("F30") { stage in
                _ = try await stage.worker(slots: 4, backend: BrokerFaults.slowEcho)
                let jobs = try await stage.submit(8, pieces: 40)
                try await stage.waitForText(jobs[0])
                try await stage.servers.redis.control("CONFIG", "SET", "maxmemory", "1")
                do {
                    let shown = try await stage.dispatcher(
                        "submit", "reply", "no room", "--deadline", "3s", "--pool", stage.pool)
                    #expect(shown.status == 3, "\(shown.errors)")
                    #expect(shown.errors.contains("memory") || shown.errors.contains("OOM"), "\(shown.errors)")
                } catch {
                    try await stage.servers.redis.control("CONFIG", "SET", "maxmemory", "0")
                    throw error
                }
                try await stage.servers.redis.control("CONFIG", "SET", "maxmemory", "0")
                try await stage.settle(within: .seconds(150), rules: .attempts(4))
            }
        }

        @Test("F32 SCRIPT FLUSH again and again: nobody notices")
        func f32ScriptsFlushed() async throws {
            try await FaultStage.play("F32") { stage in
                _ = try await stage.worker(slots: 4, backend: BrokerFaults.slowEcho)
                let jobs = try await stage.submit(8, pieces: 40)
                for _ in 0..<10 { try await stage.servers.redis.control("SCRIPT", "FLUSH") }
                try await stage.submit(4)
                try await stage.waitForText(jobs[0])
                try await stage.servers.redis.control("SCRIPT", "FLUSH")
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F33 FLUSHALL in the middle: the owner is fenced, records are made anew from the messages, one end each")
        func f33Flushed() async throws {
            try await FaultStage.play("F33") { stage in
                _ = try await stage.worker(slots: 4, backend: BrokerFaults.slowEcho)
                let jobs = (0..<8).map { stage.job($0, pieces: 40) }
                for job in jobs {
                    try await stage.client.submit(job)
                    stage.note(job, .accepted)
                }
                try await stage.waitForText(jobs[0].id)
                try await stage.servers.redis.control("FLUSHALL")
                for job in jobs {
                    try await poll(within: .seconds(60)) {
                        try await stage.client.record(job.id)?.state.isTerminal == true
                    }
                }
                try await stage.settle(rules: .lossy(2))
            }
        }

        @Test("F34 a watcher that reads nothing for a while is cut off by Redis, resumes, and has all of it")
        func f34SlowWatcher() async throws {
            try await FaultStage.play("F34") { stage in
                try await stage.servers.redis.control(
                    "CONFIG", "SET", "client-output-buffer-limit", "pubsub 1mb 512kb 2")
                _ = try await stage.worker(
                    slots: 4, backend: #"type: "echo", chunk_size: 4000, delay: "2ms", times: 20"#,
                    throughProxies: false)
                let watcher = Client(
                    amqp: try stage.servers.amqp(), redis: try stage.servers.redis(port: stage.redis.port),
                    name: "fault-slow-watcher")
                // 300 kB a job, twice: 40 of them are more than Redis and the sockets keep for a reader that does not read.
                let jobs = (0..<40).map { stage.job($0, pieces: 2500) }
                for job in jobs {
                    try await stage.client.submit(job)
                    stage.note(job.id, .accepted, expected: String(repeating: job.input.text, count: 20))
                    stage.watch(job.id, through: watcher)
                }
                stage.redis.set(.blackhole, .toClient)
                for job in jobs { try await stage.waitForEnd(job.id) }
                stage.redis.heal()
                try await stage.settle(rules: .attempts(1))
                await watcher.close()
                try await stage.servers.redis.control(
                    "CONFIG", "SET", "client-output-buffer-limit", "pubsub 32mb 8mb 60")
            }
        }

        @Test("F35 published events are lost on the way to a watcher: it fills the gap from the log")
        func f35PublishedLost() async throws {
            try await FaultStage.play("F35") { stage in
                _ = try await stage.worker(
                    slots: 8, backend: #"type: "echo", delay: "100ms""#, throughProxies: false)
                let watcher = Client(
                    amqp: try stage.servers.amqp(), redis: try stage.servers.redis(port: stage.redis.port),
                    name: "fault-lossy-watcher")
                let jobs = try await stage.submit(8, pieces: 60)
                for job in jobs { for _ in 0..<4 { stage.watch(job, through: watcher) } }
                try await stage.waitForText(jobs[0])
                for _ in 0..<4 {
                    // Nothing comes; meanwhile the subscription dies; then both are back.
                    stage.redis.set(.blackhole, .toClient)
                    try await stage.servers.redis.control("CLIENT", "KILL", "TYPE", "pubsub")
                    stage.redis.heal()
                }
                try await stage.settle(rules: .attempts(1))
                await watcher.close()
            }
        }

        @Test("F36 the log was trimmed before a watcher joins: it is told, and is shown no silent hole")
        func f36Trimmed() async throws {
            try await FaultStage.play("F36") { stage in
                _ = try await stage.worker(slots: 4, backend: BrokerFaults.slowEcho)
                let jobs = try await stage.submit(1, pieces: 60)
                try await stage.waitFor(jobs[0]) { $0.id.sequence > 20 }
                try await stage.servers.redis.control("XTRIM", JobKeys(jobs[0]).events, "MAXLEN", "5")
                let view = await FaultStage.view(jobs[0], watcher: "late", through: stage.client)
                #expect(view.events.contains(nil) && view.end == .ended)
                let events = view.events.compactMap { $0 }.compactMap(JobEvent.init(json:))
                guard case .completed(let completion)? = events.last?.content else {
                    throw FaultError("the late watcher did not see the end")
                }
                #expect(completion.result == FaultStage.text(0, pieces: 60))
                try await stage.settle(rules: .lossy(1))
            }
        }
    }
}
