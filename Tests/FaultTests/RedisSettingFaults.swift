import Foundation
import GenShared
import GenTestSupport
import Testing

extension FaultTests {
    /// Redis is not as it should be: its disk is full, its settings or rights are wrong, it is a replica, it has an
    /// older state.
    @Suite("Redis settings", .timeLimit(.minutes(5)))
    struct RedisSettingFaults {
        @Test(
            "F31 the disk of Redis' log is full: nothing is acknowledged that is not stored, and it goes on afterwards")
        func f31DiskFull() async throws {
            let disk = FileManager.default.temporaryDirectory.appending(path: "gen-disk-\(UUID().uuidString)").path
            try FileManager.default.createDirectory(atPath: disk, withIntermediateDirectories: true)
            let mounted = try await run(
                "/bin/mount", ["-t", "tmpfs", "-o", "size=2m", "tmpfs", disk],
                environment: ProcessInfo.processInfo.environment)
            guard mounted.status == 0 else { throw FaultError("a small disk needs root: \(mounted.errors)") }
            let redis = FaultServer(.redis, folder: "\(disk)/redis")
            do {
                try await fill(disk, redis)
                try await release(disk, redis)
            } catch {
                try await release(disk, redis)
                throw error
            }
        }

        private func fill(_ disk: String, _ redis: FaultServer) async throws {
            let shared = try await FaultServers.healthy()
            let servers = FaultServers(
                rabbitmq: shared.rabbitmq, redis: redis, amqpURL: shared.amqpURL, redisURL: try await redis.start())
            try await FaultStage.play("F31", servers: servers) { stage in
                _ = try await stage.worker(slots: 4, backend: BrokerFaults.slowEcho)
                let jobs = try await stage.submit(4, pieces: 60)
                try await stage.waitForText(jobs[0])
                // All that is left: the log cannot grow by a byte.
                _ = try await run(
                    "/bin/dd", ["if=/dev/zero", "of=\(disk)/ballast", "bs=1k"],
                    environment: ProcessInfo.processInfo.environment)
                try await poll(within: .seconds(20)) {
                    try await stage.dispatcher("submit", "reply", "x", "--deadline", "1s", "--pool", stage.pool).status
                        == 3
                }
                try FileManager.default.removeItem(atPath: "\(disk)/ballast")
                try await stage.settle(within: .seconds(120), rules: .attempts(4))
            }
        }

        private func release(_ disk: String, _ redis: FaultServer) async throws {
            try await redis.stop()
            _ = try await run("/bin/umount", [disk], environment: ProcessInfo.processInfo.environment)
        }

        @Test("F37 a wrong eviction policy, no log on disk, a replica: doctor names the setting, a submission says why")
        func f37WrongSettings() async throws {
            try await FaultStage.play("F37") { stage in
                let redis = stage.servers.redis
                for (setting, bad, good) in [
                    ("maxmemory-policy", "allkeys-lru", "noeviction"), ("appendonly", "no", "yes"),
                ] {
                    try await redis.control("CONFIG", "SET", setting, bad)
                    let doctor = try await stage.dispatcher("doctor")
                    try await redis.control("CONFIG", "SET", setting, good)
                    #expect(doctor.output.contains(setting) || doctor.errors.contains(setting), "\(doctor.output)")
                }
                // The switch writes a new file first.
                try await poll(within: .seconds(20)) {
                    try await redis.control("INFO", "persistence").contains("aof_rewrite_in_progress:0")
                }
                _ = try await stage.worker(slots: 4, backend: BrokerFaults.slowEcho)
                let jobs = try await stage.submit(2, pieces: 60)
                try await stage.waitForText(jobs[0])
                try await redis.control("CONFIG", "SET", "replica-serve-stale-data", "yes")
                try await redis.control("REPLICAOF", "127.0.0.1", "1")
                let shown = try await stage.dispatcher(
                    "submit", "reply", "x", "--deadline", "2s", "--pool", stage.pool)
                try await redis.control("REPLICAOF", "NO", "ONE")
                #expect(shown.status == 3 && shown.errors.lowercased().contains("replica"), "\(shown.errors)")
                try await stage.settle(rules: .attempts(2))
            }
        }

        @Test(
            "F38 Redis comes back with what it knew 2 s before: whoever ran goes on or is fenced, one end for each job")
        func f38Rollback() async throws {
            try await FaultStage.play("F38") { stage in
                let redis = stage.servers.redis
                _ = try await stage.worker(slots: 8, backend: #"type: "echo", delay: "100ms""#)
                let jobs = try await stage.submit(8, pieces: 80)
                for job in jobs { try await stage.waitForText(job) }
                let saved = "\(redis.folder)/appendonlydir.saved"
                try await copy("\(redis.folder)/appendonlydir", to: saved)
                // Not to synchronise: two seconds of work are what is lost.
                try await Task.sleep(for: .seconds(2))
                try await redis.kill()
                try FileManager.default.removeItem(atPath: "\(redis.folder)/appendonlydir")
                try FileManager.default.moveItem(atPath: saved, toPath: "\(redis.folder)/appendonlydir")
                try await redis.start()
                try await stage.settle(rules: .lossy(2))
            }
        }

        private func copy(_ folder: String, to target: String) async throws {
            let copied = try await run(
                "/bin/cp", ["-r", folder, target], environment: ProcessInfo.processInfo.environment)
            guard copied.status == 0 else { throw FaultError("cp: \(copied.errors)") }
        }

        @Test("F39 rights are taken away: told once in a while and not in a loop, and work goes on when they are back")
        func f39RightsRevoked() async throws {
            try await FaultStage.play("F39") { stage in
                let redis = stage.servers.redis
                let worker = try await stage.worker(slots: 4, backend: BrokerFaults.slowEcho)
                let jobs = try await stage.submit(4, pieces: 60)
                try await stage.waitForText(jobs[0])
                let before = worker.program.errors.split(separator: "\n").count
                try await redis.control("ACL", "SETUSER", "default", "-@scripting")
                // Not to synchronise: how often the worker complains is what is measured.
                try await Task.sleep(for: .seconds(6))
                try await redis.control("ACL", "SETUSER", "default", "+@all")
                let lines = worker.program.errors.split(separator: "\n").count - before
                #expect((1...60).contains(lines), "\(lines) lines in 6 s")
                #expect(worker.program.errors.contains("NOPERM"))
                try await stage.settle(within: .seconds(120), rules: .attempts(4))
            }
        }
    }
}
