import Foundation
import GenShared
import GenTestSupport
import Testing

extension FaultTests {
    /// Workers die, freeze and are sent away.
    @Suite("Worker", .timeLimit(.minutes(5)))
    struct WorkerFaults {
        @Test("F40 a worker killed at each step of a job: one result, one more attempt at most, none after the end")
        func f40Killed() async throws {
            try await FaultStage.play("F40") { stage in
                // Steps by what can be seen from outside: begun, in the middle, at the last piece, at the end.
                let steps: [@Sendable (JobEvent) -> Bool] = [
                    { $0.id.sequence >= 1 && $0.id.attempt == 1 }, { $0.id.sequence >= 5 }, { $0.id.sequence >= 10 },
                    { $0.isTerminal },
                ]
                for step in steps {
                    let first = try await stage.worker(slots: 2, backend: #"type: "echo", delay: "30ms""#)
                    let job = stage.job(1, pieces: 10)
                    #expect(await stage.submit(job) == .accepted)
                    try await stage.waitFor(job.id, step)
                    first.program.signal(SIGKILL)
                    _ = try await first.program.end()
                    let second = try await stage.worker(slots: 2)
                    try await stage.waitForEnd(job.id)
                    second.program.signal(SIGTERM)
                    _ = try await second.program.end()
                }
                // Throws away what came back after its job's end.
                _ = try await stage.worker()
                try await stage.settle(rules: .attempts(2))
            }
        }

        @Test("F41 a worker frozen beyond its leases: another one ends its jobs, it is fenced and ends nothing twice")
        func f41Frozen() async throws {
            try await FaultStage.play("F41") { stage in
                let first = try await stage.worker(slots: 4, backend: #"type: "echo", delay: "100ms""#)
                let jobs = try await stage.submit(4, pieces: 60)
                for job in jobs { try await stage.waitForText(job) }
                first.program.signal(SIGSTOP)
                _ = try await stage.worker(slots: 4, backend: #"type: "echo", delay: "20ms""#)
                // RabbitMQ gives the deliveries of a silent worker to another one after its heartbeats are over.
                for job in jobs { try await stage.waitForEnd(job, within: .seconds(90)) }
                first.program.signal(SIGCONT)
                try await stage.settle(rules: .attempts(2))
            }
        }

        @Test(
            "F42 SIGTERM and SIGINT, idle and running, and a second one: exit 0, jobs end or are given back at no cost")
        func f42Signals() async throws {
            try await FaultStage.play("F42") { stage in
                for signal in [SIGTERM, SIGINT] {
                    let idle = try await stage.worker()
                    idle.program.signal(signal)
                    #expect(try await idle.program.end(within: .seconds(10)) == 0)
                    let running = try await stage.worker(backend: #"type: "echo", delay: "200ms""#)
                    let jobs = try await stage.submit(2, pieces: 60)
                    for job in jobs { try await stage.waitForText(job) }
                    running.program.signal(signal)
                    try await running.program.waitFor("draining")
                    let began = ContinuousClock.now
                    running.program.signal(signal)
                    #expect(try await running.program.end(within: .seconds(10)) == 0)
                    #expect(ContinuousClock.now - began < .seconds(5))
                    let next = try await stage.worker()
                    for job in jobs {
                        try await stage.waitForEnd(job)
                        let record = try await stage.record(job)
                        #expect(record.failures == 0 && record.attempt == 2)
                    }
                    next.program.signal(signal)
                    #expect(try await next.program.end(within: .seconds(10)) == 0)
                }
                try await stage.settle(rules: .attempts(2))
            }
        }

        @Test(
            "F43 SIGTERM while RabbitMQ and Redis are away: the worker ends by its deadline, its job runs elsewhere later"
        )
        func f43SignalWithoutServers() async throws {
            try await FaultStage.play("F43") { stage in
                let worker = try await stage.worker(backend: #"type: "echo", delay: "200ms""#, more: #"drain: "3s","#)
                let jobs = try await stage.submit(2, pieces: 100)
                for job in jobs { try await stage.waitForText(job) }
                stage.amqp.refuse(true)
                stage.redis.refuse(true)
                stage.amqp.end(.reset)
                stage.redis.end(.reset)
                try await worker.program.waitFor("consumer_lost")
                let began = ContinuousClock.now
                worker.program.signal(SIGTERM)
                _ = try await worker.program.end(within: .seconds(60))
                let took = ContinuousClock.now - began
                print("figure: F43 SIGTERM to end without servers, drain 3 s: \(took)")
                #expect(took < .seconds(40))
                stage.amqp.heal()
                stage.redis.heal()
                _ = try await stage.worker()
                try await stage.settle(rules: .attempts(2))
            }
        }

        @Test("F44 a job whose workers die under it three times is poison: it ends as failed, its neighbours complete")
        func f44Poison() async throws {
            try await FaultStage.play("F44") { stage in
                try await stage.setUp()
                let bad = stage.job(667, pieces: 2000)
                #expect(await stage.submit(bad) == .accepted)
                for attempt in UInt64(1)...3 {
                    let worker = try await stage.worker(slots: 1, backend: #"type: "echo", delay: "200ms""#)
                    try await stage.waitForText(bad.id, attempt: attempt)
                    worker.program.signal(SIGKILL)
                    _ = try await worker.program.end()
                }
                _ = try await stage.worker(slots: 4)
                try await stage.submit(4)
                try await stage.waitForEnd(bad.id)
                let record = try await stage.record(bad.id)
                guard case .failed(let failure, _)? = record.ending else {
                    throw FaultError("the poison job is \(record.state)")
                }
                #expect(failure.code == .poison)
                try await stage.settle(rules: .attempts(3, ends: ["completed", "failed"]))
            }
        }

        @Test("F45 few descriptors, little memory: a clear end or good work, never a half-written result")
        func f45Limits() async throws {
            try await FaultStage.play("F45") { stage in
                try await stage.setUp()
                let jobs = try await stage.submit(4)
                let configuration = try ConfigurationFileOnDisk(
                    """
                    { backends: { main: { type: "echo" } }, \(FaultStage.plainTemplate)
                      pools: { \(stage.pool): { slots: 4, backends: ["main"] } } }
                    """)
                for limit in ["--nofile=12", "--nofile=20", "--as=160000000"] {
                    let starved = try RunningProgram(
                        "/usr/bin/prlimit",
                        [limit, try TestEnvironment.program("genworker"), "run", "--config", configuration.path],
                        environment: try stage.environment())
                    let status: Int32?
                    do { status = try await starved.end(within: .seconds(4)) } catch { status = nil }
                    // Where memory is refused, Swift's runtime itself ends the process: only what it held counts then.
                    if let status, !limit.hasPrefix("--as") {
                        let lines = starved.errors.split(separator: "\n").count
                        #expect((1...127).contains(status), "\(limit): \(status): \(starved.errors.prefix(400))")
                        #expect((1...20).contains(lines), "\(limit): \(starved.errors.prefix(400))")
                    }
                    starved.signal(SIGKILL)
                    _ = try await starved.end()
                }
                _ = try await stage.worker()
                for job in jobs { try await stage.waitForEnd(job) }
                try await stage.settle(rules: .attempts(2))
            }
        }

        @Test(
            "F46 a worker whose clock is an hour ahead or behind: leases and waits are judged by Redis, nothing expires"
        )
        func f46WrongClock() async throws {
            try await FaultStage.play("F46") { stage in
                let clock = try await ShiftedClock.build()
                for hours in [1, -1] {
                    let worker = try await stage.worker(
                        slots: 4, backend: #"type: "echo", delay: "20ms""#, extra: clock.environment(hours: hours))
                    var jobs = try await stage.submit(8, pieces: 20)
                    // One that may still wait for a minute, which is not over whatever that worker's clock says.
                    var job = stage.job(9)
                    job.expiresAt = Timestamp(milliseconds: Timestamp.now.milliseconds + 60_000)
                    #expect(await stage.submit(job) == .accepted)
                    jobs.append(job.id)
                    for job in jobs { try await stage.waitForEnd(job) }
                    worker.program.signal(SIGTERM)
                    #expect(try await worker.program.end(within: .seconds(20)) == 0)
                }
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F47 twenty workers started at once: each job runs once, and all end when told")
        func f47ManyWorkers() async throws {
            try await FaultStage.play("F47") { stage in
                try await stage.setUp()
                try await stage.submit(60)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for _ in 0..<20 { group.addTask { _ = try await stage.worker(slots: 2) } }
                    try await group.waitForAll()
                }
                try await stage.settle(rules: .attempts(1))
            }
        }
    }
}

/// A configuration in a file that goes with the test.
final class ConfigurationFileOnDisk {
    let path: String

    init(_ text: String) throws {
        path = FileManager.default.temporaryDirectory.appending(path: "gen-\(UUID().uuidString).json5").path
        try Data(text.utf8).write(to: URL(filePath: path))
    }

    // Temporary: no harm if it stays.
    deinit { try? FileManager.default.removeItem(atPath: path) }
}
