import Foundation
import GenShared
import GenTestSupport
import Testing

/// Cancels at every moment of a job's life, in each of the ways there are.
@Suite("Cancel", .timeLimit(.minutes(3)))
struct CancelTests {
    @Test("a queued job ends at once, and its message is a no-op for the worker that gets it")
    func whileQueued() async throws {
        let pool = TestEnvironment.uniqueName("t")
        #expect(try await dispatcher("setup", "--pool", pool).status == 0)
        let id = try await submit("never said", pool)
        let cancelled = try await dispatcher("cancel", id)
        #expect(cancelled.status == 0 && cancelled.output == "\(id) cancelled\n")
        let worker = try await WorkerProgram.start(pool: pool)
        // A later job of the same queue is done only when the worker has passed the cancelled one.
        #expect(try await dispatcher("submit", "reply", "next", "--wait", "--pool", pool).status == 0)
        let record = try await record(id)
        #expect(record.state == .cancelled && record.attempt == 0)
        #expect(try await worker.stop() == 0)
    }

    @Test("before the first byte, in mid-stream, by flag alone and by broadcast: cancelled, with latency and usage")
    func whileRunning() async throws {
        for (failure, way) in [("silent", "cli"), ("", "cli"), ("", "flag"), ("silent", "broadcast")] {
            let settings = failure.isEmpty ? "" : #", failure: "\#(failure)""#
            try await withWorker(backend: #"type: "echo", delay: "10ms", times: 1000\#(settings)"#) { worker in
                let id = try await submit("again and again ", worker.pool)
                let client = try TestEnvironment.client()
                let job = try #require(JobID(id))
                var end: JobEvent.Content?
                var asked = false
                for try await item in client.watch(job) {
                    guard case .event(let event) = item else { continue }
                    end = event.content
                    let isThere =
                        failure.isEmpty ? event.id.sequence > 5 : event.id.sequence == 1 && event.id.attempt == 1
                    if isThere, !asked {
                        asked = true
                        try await cancel(job, way, client)
                    }
                }
                guard case .cancelled(_, _, let usage)? = end else {
                    Issue.record("the end is \(String(describing: end))")
                    return
                }
                #expect(usage != nil)
                await client.close()
            }
        }
    }

    @Test("after the end, twice, and for an unknown id: told so, with exit codes 0, 0 and 4")
    func afterTheEnd() async throws {
        try await withWorker { worker in
            let shown = try await dispatcher("submit", "reply", "done", "--wait", "--json", "--pool", worker.pool)
            #expect(shown.status == 0)
            let id = try await submit("done", worker.pool)
            #expect(try await dispatcher("watch", id).status == 0)
            for _ in 0..<2 {
                let cancelled = try await dispatcher("cancel", id)
                #expect(cancelled.status == 0 && cancelled.output.contains("has ended before: completed"))
            }
            #expect(try await dispatcher("cancel", TestEnvironment.uniqueName("none")).status == 4)
        }
    }

    @Test("a job whose cancel came before it ends as soon as it arrives")
    func beforeItsSubmission() async throws {
        try await withWorker { worker in
            let id = TestEnvironment.uniqueName("early")
            #expect(try await dispatcher("cancel", id).status == 4)
            let shown = try await dispatcher("submit", "reply", "x", "--wait", "--id", id, "--pool", worker.pool)
            #expect(shown.status == 6)
        }
    }

    private func cancel(_ id: JobID, _ way: String, _ client: Client) async throws {
        let connection = RedisConnection(url: try TestEnvironment.redisURL(), name: "cancel-test")
        switch way {
        case "flag": _ = try await connection.send(RedisCommand("SET", JobKeys(id).cancel, "anything"))
        case "broadcast": _ = try await connection.send(RedisCommand("PUBLISH", JobKeys.control, "cancel \(id)"))
        default: #expect(try await client.cancel(id, by: "test") == .flagged)
        }
        await connection.close()
    }

    private func submit(_ text: String, _ pool: String) async throws -> String {
        let submitted = try await dispatcher("submit", "reply", text, "--pool", pool)
        try #require(submitted.status == 0)
        return String(submitted.output.dropLast())
    }

    private func record(_ id: String) async throws -> JobRecord {
        let client = try TestEnvironment.client()
        let record = try await client.record(try #require(JobID(id)))
        await client.close()
        return try #require(record)
    }
}
