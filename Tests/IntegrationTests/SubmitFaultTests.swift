import Foundation
import GenShared
import GenTestSupport
import Testing

/// What submit says when a server does not do its part.
@Suite("Submit under faults", .timeLimit(.minutes(2)))
struct SubmitFaultTests {
    @Test("a full queue refuses the job: exit code 5, the record failed, its keys free again")
    func full() async throws {
        let pool = TestEnvironment.uniqueName("full")
        _ = try await dispatcher("setup", "--pool", "text")
        try await QueueTool.run(.full, Topology.queue(pool: pool, lane: .interactive))
        let id = TestEnvironment.uniqueName("full-")
        let key = TestEnvironment.uniqueName("key")
        let refused = try await dispatcher(
            "submit", "reply", "x", "--pool", pool, "--id", id, "--idempotency-key", key)
        #expect(refused.status == 5 && refused.errors.contains("is full"))
        #expect(try await dispatcher("status", id).status == 1)
        let name = "gen:idem:\(try SHA256Digest(of: Array(key.utf8)))"
        #expect(try await QueueTool.redis("EXISTS", name) == "0")
    }

    @Test("a job that waits is not ended by a repetition of its submission that finds the queue full")
    func repetitionOfAcceptedJob() async throws {
        let pool = TestEnvironment.uniqueName("full")
        _ = try await dispatcher("setup", "--pool", pool)
        let queue = Topology.queue(pool: pool, lane: .interactive)
        let id = TestEnvironment.uniqueName("full-")
        let words = ["submit", "reply", "x", "--pool", pool, "--id", id]
        #expect(try await run(words).status == 0)
        try await QueueTool.run(.delete, queue)
        try await QueueTool.run(.full, queue)
        #expect(try await run(words).status == 8)
        #expect(try await dispatcher("status", id).status == 9)
    }

    @Test("a queue that was deleted returns the job: exit code 5 and what to run")
    func deleted() async throws {
        let pool = TestEnvironment.uniqueName("gone")
        _ = try await dispatcher("setup", "--pool", pool)
        try await QueueTool.run(.delete, Topology.queue(pool: pool, lane: .interactive))
        let refused = try await dispatcher("submit", "reply", "x", "--pool", pool)
        #expect(refused.status == 5 && refused.errors.contains("gendispatcher setup --pool \(pool)"))
    }

    @Test("a server that is away or refuses us: exit code 3 by the deadline, in one line that names it")
    func away() async throws {
        let rabbit = try TestEnvironment.value("GEN_TEST_AMQP_URL")
        let at = try #require(rabbit.firstIndex(of: "@"))
        let cases: [(String, String, String)] = [
            ("GEN_AMQP_URL", "amqp://127.0.0.1:1", "127.0.0.1:1"),
            ("GEN_AMQP_URL", "amqp://gencluster:hunter2\(rabbit[at...])", "refuses user"),
            ("GEN_REDIS_URL", "redis://127.0.0.1:1", "127.0.0.1:1"),
            ("GEN_REDIS_URL", "redis://nobody:hunter2@\(try TestEnvironment.redisURL().place)", "logging in"),
        ]
        for (variable, url, said) in cases {
            let (result, elapsed) = try await submit([variable: url], deadline: "2s")
            #expect(result.status == 3 && result.errors.contains(said), "\(url): \(result)")
            #expect(!result.errors.contains("hunter2") && result.errors.split(separator: "\n").count == 1)
            #expect(elapsed < .seconds(5), "\(url)")
        }
    }

    @Test("a blocked RabbitMQ takes no job: exit code 3 by the deadline; one that is let go in time takes it once")
    func blocked() async throws {
        try await OwnRabbitMQ.with { rabbit in
            let pool = TestEnvironment.uniqueName("blocked")
            let environment = try TestEnvironment.programEnvironment().merging(["GEN_AMQP_URL": rabbit.url]) { $1 }
            let program = try TestEnvironment.program("gendispatcher")
            _ = try await GenTestSupport.run(program, ["setup", "--pool", pool], environment: environment)
            _ = try await rabbit.control("set_vm_memory_high_watermark", "0.00001")
            // The alarm is raised by the server's next look at its memory.
            let doctor = try await RunningProgram.until(within: .seconds(30)) {
                let doctor = try await GenTestSupport.run(program, ["doctor"], environment: environment)
                return doctor.output.contains("RabbitMQ takes no messages") ? doctor : nil
            }
            #expect(doctor.status == 1)
            let words = ["submit", "reply", "x", "--pool", pool, "--deadline"]
            let began = ContinuousClock.now
            let refused = try await GenTestSupport.run(program, words + ["2s"], environment: environment)
            #expect(refused.status == 3 && refused.errors.contains("blocked"), "\(refused)")
            #expect(ContinuousClock.now - began < .seconds(5))
            let patient = try RunningProgram(program, words + ["60s"], environment: environment)
            _ = try await rabbit.control("set_vm_memory_high_watermark", "0.4")
            #expect(try await patient.end() == 0, "\(patient.errors)")
            let after = try await GenTestSupport.run(program, ["doctor", "--pool", pool], environment: environment)
            let queue = Topology.queue(pool: pool, lane: .interactive)
            #expect(after.output.contains("\(queue): 1 ready"), "\(after.output)")
        }
    }

    @Test("a server that takes connections and says nothing ends by the deadline")
    func silent() async throws {
        let server = ScriptedServer { _ = $0.waitForClose(seconds: 30) }
        defer { withExtendedLifetime(server) {} }
        for (variable, scheme) in [("GEN_AMQP_URL", "amqp"), ("GEN_REDIS_URL", "redis")] {
            let (result, elapsed) = try await submit(
                [variable: "\(scheme)://127.0.0.1:\(server.port)"], deadline: "2s")
            // Nothing was sent to a broker that never greeted.
            #expect(result.status == 3, "\(scheme): \(result)")
            #expect(elapsed < .seconds(5), "\(scheme)")
        }
    }

    @Test("Ctrl-C ends a submission at once, whatever its server does")
    func interrupt() async throws {
        let (connections, connected) = AsyncStream.makeStream(of: Void.self)
        let server = ScriptedServer {
            connected.yield()
            _ = $0.waitForClose(seconds: 60)
        }
        defer { withExtendedLifetime(server) {} }
        let url = ["GEN_REDIS_URL": "redis://127.0.0.1:\(server.port)"]
        let program = try RunningProgram(
            TestEnvironment.program("gendispatcher"), ["submit", "reply", "x", "--deadline", "60s"],
            environment: try TestEnvironment.programEnvironment().merging(url) { $1 })
        // Before it connects, it has made sure to hear of Ctrl-C.
        for await _ in connections { break }
        let began = ContinuousClock.now
        program.signal(SIGINT)
        #expect(try await program.end(within: .seconds(60)) == 130)
        #expect(ContinuousClock.now - began < .seconds(3))
        #expect(program.errors.contains("interrupted"))
    }

    private func submit(
        _ variables: [String: String], deadline: String
    ) async throws -> (result: (status: Int32, output: String, errors: String), elapsed: Duration) {
        let environment = try TestEnvironment.programEnvironment().merging(variables) { $1 }
        let began = ContinuousClock.now
        let result = try await GenTestSupport.run(
            TestEnvironment.program("gendispatcher"), ["submit", "reply", "x", "--deadline", deadline],
            environment: environment)
        return (result, .now - began)
    }

    private func run(_ words: [String]) async throws -> (status: Int32, output: String, errors: String) {
        try await GenTestSupport.run(
            TestEnvironment.program("gendispatcher"), words, environment: TestEnvironment.programEnvironment())
    }
}
