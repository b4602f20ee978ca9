import Foundation
import GenShared
import GenTestSupport
import Testing

/// The way of a job from `gendispatcher` through RabbitMQ and a worker back to its watchers, with the echo backend.
@Suite("Submit and watch", .timeLimit(.minutes(3)))
struct SubmitAndWatchTests {
    private static let text = "Grüße aus dem Café – 日本語 🚋 and a longer tail of words that fills many chunks."

    @Test("submit without a flag prints the id and nothing else")
    func submitPrintsTheID() async throws {
        try await withWorker { worker in
            let submitted = try await dispatcher("submit", "reply", "Hello", "--pool", worker.pool)
            #expect(submitted.status == 0)
            #expect(submitted.errors == "")
            let id = submitted.output.dropLast()
            #expect(submitted.output.last == "\n" && JobID(String(id)) != nil && id.count == 26)
        }
    }

    @Test("--stream prints the text, --wait the result, both with the line of figures on standard error")
    func streamAndWait() async throws {
        try await withWorker(backend: #"type: "echo", chunk_size: 3"#) { worker in
            for flag in ["--stream", "--wait"] {
                let shown = try await dispatcher("submit", "reply", Self.text, flag, "--pool", worker.pool)
                #expect(shown.status == 0)
                #expect(shown.output.contains(Self.text))
                #expect(shown.errors.contains("completion tokens") && shown.errors.contains("queued"))
            }
        }
    }

    @Test("--json prints one event a line, each naming the one before it, and the chunks joined are the result")
    func jsonEvents() async throws {
        try await withWorker(backend: #"type: "echo", chunk_size: 2"#) { worker in
            let shown = try await dispatcher("submit", "reply", Self.text, "--stream", "--json", "--pool", worker.pool)
            let events = try shown.output.split(separator: "\n").map { line in
                try #require(JobEvent(json: String(line)))
            }
            #expect(events.first?.content == .queued)
            for (before, after) in zip(events, events.dropFirst()) { #expect(after.previous == before.id) }
            var joined = ""
            for case .chunk(let text) in events.map(\.content) { joined += text }
            guard case .completed(let completion)? = events.last?.content else {
                Issue.record("the last event is not completed")
                return
            }
            #expect(joined == completion.result)
            #expect(completion.stats.totalMilliseconds >= 0 && completion.usage != nil)
        }
    }

    @Test("watch prints the same bytes started late, from any event, and after the end")
    func lateWatchers() async throws {
        try await withWorker(backend: #"type: "echo", chunk_size: 2, delay: "20ms""#) { worker in
            let id = try await submit(Self.text, to: worker)
            async let early = dispatcher("watch", id)
            // The second watcher joins when some of the text is there.
            let client = try TestEnvironment.client()
            for try await item in client.watch(try #require(JobID(id))) {
                if case .event(let event) = item, event.id.sequence > 8 { break }
            }
            let late = try await dispatcher("watch", id)
            let first = try await early
            let after = try await dispatcher("watch", id)
            #expect(first.output == late.output && late.output == after.output)
            let events = try await dispatcher("watch", id, "--json").output.split(separator: "\n")
            for index in stride(from: 0, to: events.count - 1, by: 7) {
                let event = try #require(JobEvent(json: String(events[index])))
                let rest = try await dispatcher("watch", id, "--from", event.id.description, "--json")
                #expect(rest.output.split(separator: "\n") == Array(events[(index + 1)...]))
            }
            await client.close()
        }
    }

    @Test("20 jobs at once on 4 slots all complete, each with its own text")
    func twentyOnFourSlots() async throws {
        try await withWorker(slots: 4, backend: #"type: "echo", delay: "5ms""#) { worker in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        let shown = try await dispatcher(
                            "submit", "rewrite", "job number \(number) speaks", "--wait", "--pool", worker.pool)
                        #expect(shown.status == 0 && shown.output.contains("job number \(number) speaks"))
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test("B24: status, result and their exit codes tell where a job stands")
    func statusAndResult() async throws {
        try await withWorker(backend: #"type: "echo", delay: "30s""#) { worker in
            let id = try await submit("slow", to: worker)
            let waiting = try await dispatcher("status", id)
            #expect(waiting.status == 9)
            #expect(try await dispatcher("result", id).status == 9)
            #expect(try await dispatcher("cancel", id, "--wait").status == 0)
            #expect(try await dispatcher("status", id).status == 6)
            #expect(try await dispatcher("result", id).status == 6)
        }
        #expect(try await dispatcher("status", TestEnvironment.uniqueName("none")).status == 4)
        #expect(try await dispatcher("result", TestEnvironment.uniqueName("none")).status == 4)
        #expect(try await dispatcher("watch", TestEnvironment.uniqueName("none")).status == 4)
    }

    @Test("watch waits for a job that does not exist yet, when asked to")
    func waitForJob() async throws {
        try await withWorker { worker in
            let id = TestEnvironment.uniqueName("later")
            async let watching = dispatcher("watch", id, "--wait-for-job", "30s")
            let submitted = try await dispatcher("submit", "reply", "here I am", "--id", id, "--pool", worker.pool)
            #expect(submitted.output == "\(id)\n")
            let shown = try await watching
            #expect(shown.status == 0 && shown.output.contains("here I am"))
        }
    }

    @Test("B15: a job nobody takes in time is expired, and its watcher ends with exit code 7")
    func expiry() async throws {
        let pool = TestEnvironment.uniqueName("t")
        #expect(try await dispatcher("setup", "--pool", pool).status == 0)
        let shown = try await dispatcher("submit", "reply", "too late", "--wait", "--expires-in", "1s", "--pool", pool)
        #expect(shown.status == 7)
        #expect(shown.errors.contains("expired"))
    }

    @Test(
        "a failure that may heal is tried again, announced to watchers, and ends as failed after four attempts at most")
    func retries() async throws {
        try await withWorker(backend: #"type: "echo", failure: "permanent""#) { worker in
            let shown = try await dispatcher("submit", "reply", "no", "--wait", "--pool", worker.pool)
            #expect(shown.status == 1 && shown.errors.contains("refuses as configured"))
        }
        try await withWorker(backend: #"type: "echo", failure: "middle", chunk_size: 4"#) { worker in
            let id = try await submit("half of this is said", to: worker)
            let client = try TestEnvironment.client()
            var sawRetry = false
            for try await item in client.watch(try #require(JobID(id))) {
                guard case .event(let event) = item else { continue }
                if case .retrying("failure", _?, 2) = event.content { sawRetry = true }
                if case .started(2, _, _, _, restarted: true) = event.content { break }
            }
            #expect(sawRetry)
            await client.close()
            #expect(try await dispatcher("cancel", id, "--wait").status == 0)
        }
    }

    @Test("the same job under the same id is one job; another job under it is refused with exit code 5")
    func sameID() async throws {
        try await withWorker { worker in
            let id = TestEnvironment.uniqueName("once")
            for _ in 0..<3 {
                let again = try await dispatcher("submit", "reply", "only once", "--id", id, "--pool", worker.pool)
                #expect(again.status == 0 && again.output == "\(id)\n")
            }
            #expect(try await dispatcher("watch", id).status == 0)
            #expect(try await dispatcher("submit", "reply", "only once", "--id", id, "--pool", worker.pool).status == 0)
            #expect(try await dispatcher("submit", "reply", "another", "--id", id, "--pool", worker.pool).status == 5)
            let client = try TestEnvironment.client()
            let job = try #require(JobID(id))
            #expect(try await client.record(job)?.attempt == 1)
            await client.close()
        }
    }

    @Test("a pool does not run kinds that it is not configured for")
    func kinds() async throws {
        try await withWorker(poolSettings: #"kinds: ["slogan"]"#) { worker in
            let shown = try await dispatcher("submit", "reply", "x", "--wait", "--pool", worker.pool)
            #expect(shown.status == 1 && shown.errors.contains("does not serve reply"))
        }
    }

    @Test("an unroutable job is rejected with exit code 5, and its record says so")
    func unroutable() async throws {
        let id = TestEnvironment.uniqueName("lost")
        let submitted = try await dispatcher(
            "submit", "reply", "x", "--id", id, "--pool", TestEnvironment.uniqueName("no"))
        #expect(submitted.status == 5 && submitted.errors.contains("gendispatcher setup"))
        #expect(try await dispatcher("status", id).status == 1)
    }

    private func submit(_ text: String, to worker: WorkerProgram) async throws -> String {
        let submitted = try await dispatcher("submit", "reply", text, "--pool", worker.pool)
        try #require(submitted.status == 0)
        return String(submitted.output.dropLast())
    }
}
