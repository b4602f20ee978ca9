import Foundation
import GenShared
import GenTestSupport
import Testing

/// Idempotency and unique keys between processes, on real servers.
@Suite("Submission keys of programs", .timeLimit(.minutes(3)))
struct SubmissionKeyProgramTests {
    private func key() -> String { TestEnvironment.uniqueName("key ") }

    @Test("twenty processes with one idempotency key get one id, and the job runs once")
    func twenty() async throws {
        try await withWorker { worker in
            let key = key()
            let answers = try await withThrowingTaskGroup(of: (Int32, String, String).self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        try await dispatcher(
                            "submit", "reply", "once", "--pool", worker.pool, "--idempotency-key", key,
                            "--expires-in", "10m", "--deadline", "60s", within: .seconds(90))
                    }
                }
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(answers.allSatisfy { $0.0 == 0 }, "\(answers.map(\.2))")
            #expect(Set(answers.map(\.1)).count == 1)
            let id = String(answers[0].1.dropLast())
            #expect(try await dispatcher("watch", id).status == 0)
            #expect(try await QueueTool.redis("HGET", "gen:{\(id)}:job", "attempt") == "1")
            let other = try await dispatcher(
                "submit", "reply", "something else", "--pool", worker.pool, "--idempotency-key", key)
            #expect(other.status == 5 && other.errors.contains(id) && other.output == "")
        }
    }

    @Test("a key keeps its job for a day, under its digest, and a refused submission leaves none behind")
    func life() async throws {
        let pool = TestEnvironment.uniqueName("k")
        _ = try await dispatcher("setup", "--pool", pool)
        let key = key()
        let name = "gen:idem:\(try SHA256Digest(of: Array(key.utf8)))"
        let words = ["submit", "reply", "x", "--idempotency-key", key, "--unique-key", key, "--pool"]
        let refused = try await run(words + ["\(pool)no"])
        #expect(refused.status == 5)
        #expect(try await QueueTool.redis("EXISTS", name, name.replacing("idem", with: "unique")) == "0")
        let taken = try await run(words + [pool])
        #expect(taken.status == 0)
        #expect(try await QueueTool.redis("GET", name).hasPrefix(taken.output.dropLast()))
        let life = try #require(Int(await QueueTool.redis("PTTL", name)))
        #expect((86_000_000...86_400_000).contains(life))
    }

    @Test("a unique key is busy while its job is open: exit code 5 and the holder's id; --replace ends that one first")
    func unique() async throws {
        try await withWorker(slots: 4, backend: #"type: "echo", delay: "50ms", times: 1000"#) { worker in
            let key = key()
            let words = ["submit", "reply", "for ever ", "--pool", worker.pool, "--unique-key", key]
            let first = String(try await run(words).output.dropLast())
            let watch = try RunningProgram(
                TestEnvironment.program("gendispatcher"), ["watch", first],
                environment: TestEnvironment.programEnvironment())
            try await watch.waitFor("for")
            let busy = try await run(words)
            #expect(busy.status == 5 && busy.errors.contains(first) && busy.output == "")
            let second = try await run(words + ["--replace", "--deadline", "30s"])
            #expect(second.status == 0)
            #expect(try await watch.end() == 6)
            #expect(watch.errors.contains("replaced by"))
            _ = try await dispatcher("cancel", String(second.output.dropLast()), "--wait")
            let third = try await run(words)
            #expect(third.status == 0)
            _ = try await dispatcher("cancel", String(third.output.dropLast()), "--wait")
        }
    }

    @Test("of twenty processes that ask for one unique key at once, one gets it")
    func oneOfTwenty() async throws {
        let pool = TestEnvironment.uniqueName("k")
        _ = try await dispatcher("setup", "--pool", pool)
        let key = key()
        let answers = try await withThrowingTaskGroup(of: (Int32, String, String).self) { group in
            for _ in 0..<20 {
                group.addTask {
                    try await dispatcher("submit", "reply", "x", "--pool", pool, "--unique-key", key)
                }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        let winners = answers.filter { $0.0 == 0 }.map { String($0.1.dropLast()) }
        #expect(winners.count == 1 && answers.count { $0.0 == 5 } == 19)
        #expect(answers.filter { $0.0 == 5 }.allSatisfy { $0.2.contains(winners[0]) })
    }

    private func run(_ words: [String]) async throws -> (status: Int32, output: String, errors: String) {
        try await GenTestSupport.run(
            TestEnvironment.program("gendispatcher"), words, environment: TestEnvironment.programEnvironment())
    }
}
