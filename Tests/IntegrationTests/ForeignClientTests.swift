import Foundation
import GenShared
import GenTestSupport
import Testing

/// Jobs from programs that are not ours, watched by programs that are not ours.
@Suite("Foreign clients", .timeLimit(.minutes(2)))
struct ForeignClientTests {
    @Test("a job published with amqp-publish streams to redis-cli")
    func shell() async throws {
        try await withWorker(backend: #"type: "echo", chunk_size: 5"#) { worker in
            let id = TestEnvironment.uniqueName("shell-")
            let redis = try TestEnvironment.value("GEN_TEST_REDIS_URL")
            let subscriber = try RunningProgram(
                "/usr/bin/redis-cli", ["-u", redis, "SUBSCRIBE", "gen:{\(id)}"], environment: [:])
            try await subscriber.waitFor("subscribe")
            let published = try await run(
                "/usr/bin/amqp-publish",
                [
                    "--url=\(try TestEnvironment.value("GEN_TEST_AMQP_URL"))", "-e", "gen.jobs.v1", "-r",
                    "\(worker.pool).interactive", "-p", "-C", "application/json", "-b",
                    #"{"v":1,"id":"\#(id)","kind":"reply","input":{"text":"from a shell"}}"#,
                ], environment: [:])
            #expect(published.status == 0, "\(published.errors)")
            try await subscriber.waitFor(#""type":"completed""#)
            subscriber.signal(SIGTERM)
            #expect(subscriber.output.contains(#""type":"started""#))
            let result = try await run(
                "/usr/bin/redis-cli", ["-u", redis, "HGET", "gen:{\(id)}:job", "result"], environment: [:])
            #expect(result.output.contains("from a shell"))
        }
    }

    @Test("a job published with pika is watched exactly with redis-py, late join included")
    func python() async throws {
        try await withWorker(backend: #"type: "echo", chunk_size: 3, delay: "5ms""#) { worker in
            let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "foreign_client.py").path
            let result = try await run(
                TestEnvironment.value("GEN_TEST_PYTHON"),
                [
                    script, TestEnvironment.value("GEN_TEST_AMQP_URL"), TestEnvironment.value("GEN_TEST_REDIS_URL"),
                    worker.pool, "A text from Python, long enough for many chunks: äöü 🚋.",
                ], environment: ["PATH": "/usr/bin:/bin"])
            #expect(result.status == 0, "\(result.errors)")
            #expect(result.output.hasSuffix("identical\n"))
        }
    }
}
