import Foundation
import GenShared
import GenTestSupport
import Testing

/// Doctor on real servers.
@Suite("Doctor", .timeLimit(.minutes(3)))
struct DoctorTests {
    @Test("what is missing is a fault with its fix, and --fix mends it")
    func fix() async throws {
        _ = try await dispatcher("setup", "--pool", "text")
        let pool = TestEnvironment.uniqueName("d")
        let sick = try await dispatcher("doctor", "--pool", pool)
        #expect(sick.status == 1 && sick.output.contains("gendispatcher setup --pool \(pool)"))
        let mended = try await dispatcher("doctor", "--pool", pool, "--fix")
        #expect(mended.status == 0, "\(mended)")
        let well = try await dispatcher("doctor", "--pool", pool)
        #expect(well.status == 0, "\(well)")
        for said in ["noeviction", "messages are taken", "exchanges are there", "keys, channels and scripts"] {
            #expect(well.output.contains(said), "\(said)")
        }
        // Nobody serves it: that is a warning.
        #expect(well.output.contains("no worker serves pool \"\(pool)\""))
    }

    @Test("a server that is away is exit code 3")
    func away() async throws {
        var environment = try TestEnvironment.programEnvironment()
        environment["GEN_AMQP_URL"] = "amqp://127.0.0.1:1"
        let result = try await run(TestEnvironment.program("gendispatcher"), ["doctor"], environment: environment)
        #expect(result.status == 3 && result.output.contains("127.0.0.1:1"))
    }

    @Test("a job whose message is gone is found, published again, and runs once")
    func resend() async throws {
        let pool = TestEnvironment.uniqueName("d")
        _ = try await dispatcher("setup", "--pool", pool)
        let submitted = try await dispatcher("submit", "reply", "found again", "--pool", pool)
        let id = String(submitted.output.dropLast())
        let young = try await dispatcher("doctor", "--resend", "--dry-run")
        #expect(young.status == 0 && young.output.contains("\(pool).interactive: 1 waiting job"))
        try await QueueTool.run(.purge, Topology.queue(pool: pool, lane: .interactive))
        // As if it had waited for two minutes.
        let before = Timestamp.now.milliseconds - 120_000
        _ = try await QueueTool.redis("HSET", "gen:{\(id)}:job", "queued_at", "\(before)")
        let found = try await dispatcher("doctor", "--resend", "--dry-run")
        #expect(found.output.contains("Messages are missing"), "\(found.output)")
        let resent = try await dispatcher("doctor", "--resend")
        #expect(resent.output.contains("published again"), "\(resent)")
        let worker = try await WorkerProgram.start(pool: pool)
        let shown = try await dispatcher("watch", id)
        #expect(shown.status == 0 && shown.output.contains("found again"))
        #expect(try await QueueTool.redis("HGET", "gen:{\(id)}:job", "attempt") == "1")
        try await worker.stop()
    }
}
