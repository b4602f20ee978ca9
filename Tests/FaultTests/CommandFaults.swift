import Foundation
import GenShared
import GenTestSupport
import Testing

extension FaultTests {
    /// Programs that submit, watch and cancel, in trouble and in a race.
    @Suite("Commands", .timeLimit(.minutes(5)))
    struct CommandFaults {
        @Test("F59 a reader that leaves or a full disk ends the watching, not the job")
        func f59OutputClosed() async throws {
            try await FaultStage.play("F59") { stage in
                _ = try await stage.worker(backend: #"type: "echo", delay: "50ms""#)
                let program = try TestEnvironment.program("gendispatcher")
                for tail in ["| head -c 5", "> /dev/full"] {
                    let job = stage.job(1, pieces: 40)
                    #expect(await stage.submit(job) == .accepted)
                    let shown = try await run(
                        "/bin/bash", ["-c", "set -o pipefail; '\(program)' watch \(job.id) \(tail)"],
                        environment: try stage.environment())
                    #expect(shown.status < 128, "\(tail): \(shown.status) \(shown.errors)")
                }
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F60 Ctrl-C leaves the job running and says how to go on; a second one ends at once")
        func f60Interrupted() async throws {
            try await FaultStage.play("F60") { stage in
                _ = try await stage.worker(backend: #"type: "echo", delay: "50ms""#)
                let job = stage.job(1, pieces: 60)
                #expect(await stage.submit(job) == .accepted)
                let program = try RunningProgram(
                    TestEnvironment.program("gendispatcher"), ["watch", job.id.rawValue],
                    environment: try stage.environment())
                try await program.waitFor("Job 1")
                program.signal(SIGINT)
                program.signal(SIGINT)
                #expect(try await program.end(within: .seconds(5)) == 130)
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F61 cancels race with the claim, the text and the end: each job has one end, every answer is true")
        func f61CancelRaces() async throws {
            try await FaultStage.play("F61") { stage in
                _ = try await stage.worker(slots: 16, backend: #"type: "echo", delay: "1ms""#)
                var generator = SeededGenerator(seed: 61)
                let delays = (0..<200).map { _ in Int.random(in: 0...40, using: &generator) }
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for (number, delay) in delays.enumerated() {
                        group.addTask {
                            let job = stage.job(number, pieces: 12)
                            await stage.submit(job)
                            // Not to synchronise: a race is what is tested.
                            try await Task.sleep(for: .milliseconds(delay))
                            let first = try await stage.cancel(job.id)
                            let second = try await stage.client.cancel(job.id, by: "again")
                            if case .terminal = first { #expect(second == first) }
                            #expect(first != .unknown && second != .unknown)
                        }
                    }
                    try await group.waitForAll()
                }
                #expect(try await stage.client.cancel(#require(JobID("nobody")), by: "test") == .unknown)
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F62 a hundred watchers of one job, joining at random and killed at random: the same bytes for all")
        func f62ManyWatchers() async throws {
            try await FaultStage.play("F62") { stage in
                _ = try await stage.worker(backend: #"type: "echo", delay: "50ms""#)
                let job = stage.job(1, pieces: 120)
                #expect(await stage.submit(job) == .accepted)
                var generator = SeededGenerator(seed: 62)
                for number in 0..<100 {
                    let start = UInt64.random(in: 0...12, using: &generator)
                    try await stage.waitFor(job.id) {
                        $0.id.sequence >= UInt64(number) && $0.id.attempt == 1 || $0.isTerminal
                    }
                    let from = number < 14 ? EventID.origin : EventID(attempt: 1, sequence: start + 1)
                    stage.watch(job.id, from: from)
                    if number % 10 == 5 {
                        try await stage.servers.redis.control("CLIENT", "KILL", "TYPE", "pubsub")
                    }
                }
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F63 one job handed in from 20 processes at once under one idempotency key: one id for all, it runs once")
        func f63SameKey() async throws {
            try await FaultStage.play("F63") { stage in
                _ = try await stage.worker(backend: #"type: "echo", delay: "20ms""#)
                let text = FaultStage.text(1, pieces: 10)
                let outputs = try await withThrowingTaskGroup(of: (Int32, String, String).self) { group in
                    for _ in 0..<20 {
                        group.addTask {
                            try await stage.dispatcher(
                                "submit", "reply", text, "--idempotency-key", stage.pool, "--pool", stage.pool,
                                "--option", "max_tokens=8000")
                        }
                    }
                    return try await group.reduce(into: [(Int32, String, String)]()) { $0.append($1) }
                }
                #expect(outputs.allSatisfy { $0.0 == 0 }, "\(outputs.map(\.2))")
                let ids = Set(outputs.map(\.1))
                #expect(ids.count == 1)
                let id = try #require(ids.first.flatMap { JobID(String($0.dropLast())) })
                stage.note(id, .accepted, expected: text)
                stage.watch(id)
                try await stage.settle(rules: .attempts(1))
            }
        }
    }
}
