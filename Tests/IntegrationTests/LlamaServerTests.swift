import Foundation
import GenShared
import GenTestSupport
import Testing

/// The real model, by the real `llama-server` and by the launcher over the wheel.
@Suite("llama-server", .serialized, .timeLimit(.minutes(6)))
struct LlamaServerTests {
    enum Server: String, CaseIterable, Sendable, CustomTestStringConvertible {
        case real = "GEN_TEST_LLAMA_REAL"
        case wheel = "GEN_TEST_LLAMA_WHEEL"

        var testDescription: String { self == .real ? "real" : "wheel" }

        func backend() throws -> String {
            """
            type: "llama-server", command: "\(try TestEnvironment.value(rawValue))",
            model: "\(try TestEnvironment.model())", parallel: 4, context: 1024, threads: 2
            """
        }
    }

    @Test(
        "a slogan, a rewrite and a reply stream real text whose chunks joined are the result",
        arguments: Server.allCases)
    func kinds(_ server: Server) async throws {
        try await withWorker(backend: server.backend()) { worker in
            for (kind, text) in [
                ("slogan", "coffee shop"), ("rewrite", "The bus was late again"), ("reply", "Are you free on Friday?"),
            ] {
                let shown = try await dispatcher(
                    "submit", kind, text, "--stream", "--json", "--option", "max_tokens=60", "--pool", worker.pool)
                #expect(shown.status == 0, "\(shown.errors)")
                let events = shown.output.split(separator: "\n").compactMap { JobEvent(json: String($0)) }
                var joined = ""
                for case .chunk(let piece) in events.map(\.content) { joined += piece }
                guard case .completed(let completion)? = events.last?.content else {
                    Issue.record("\(kind) did not complete")
                    continue
                }
                #expect(joined == completion.result && !joined.isEmpty)
                #expect(completion.usage?.promptTokens ?? 0 > 10 && completion.usage?.completionTokens ?? 0 > 0)
                #expect(completion.stats.firstTokenMilliseconds != nil)
                if kind == "slogan" { #expect(!joined.contains { $0.isNewline }) }
                let id = try #require(shown.output.split(separator: "\n").first.flatMap { _ in events.first?.id })
                #expect(id == .queued)
            }
        }
    }

    @Test("20 jobs at once on 4 slots all complete")
    func twenty() async throws {
        try await withWorker(backend: Server.real.backend()) { worker in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<20 {
                    group.addTask {
                        let shown = try await dispatcher(
                            "submit", "slogan", "shop number \(number)", "--wait", "--option", "max_tokens=16",
                            "--pool",
                            worker.pool, within: .seconds(120))
                        #expect(shown.status == 0 && !shown.output.isEmpty)
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    @Test(
        "cancel to terminal event is below 100 ms at the median, and the slot is seen free", arguments: Server.allCases)
    func cancelLatency(_ server: Server) async throws {
        try await withWorker(backend: server.backend()) { worker in
            let client = try TestEnvironment.client()
            var latencies: [Duration] = []
            for round in 0..<9 {
                var job = Job(
                    id: JobID(atMilliseconds: Timestamp.now.milliseconds), kind: .reply,
                    input: JobInput(text: "Tell a very long story about a river, round \(round)."))
                job.options.maxTokens = 900
                job.pool = worker.pool
                try await client.submit(job)
                var asked: ContinuousClock.Instant?
                for try await item in client.watch(job.id) {
                    guard case .event(let event) = item else { continue }
                    if case .chunk = event.content, asked == nil {
                        asked = .now
                        _ = try await client.cancel(job.id, by: "test")
                    }
                    if case .cancelled(_, let latency, let usage) = event.content, let asked {
                        latencies.append(.now - asked)
                        #expect(latency != nil && usage != nil)
                    }
                }
            }
            #expect(latencies.count == 9)
            let median = latencies.sorted()[latencies.count / 2]
            print("figure: cancel to terminal event, \(server.testDescription), median \(median)")
            #expect(median < .milliseconds(100))
            // Four fresh jobs at once need all four slots: a slot that was not freed would hold one up.
            try await fourShortJobs(worker.pool, client)
            await client.close()
        }
    }

    @Test("the server is gone with its worker, even after kill -9 and 15 s of idling", arguments: Server.allCases)
    func goneWithTheWorker(_ server: Server) async throws {
        let worker = try await WorkerProgram.start(pool: TestEnvironment.uniqueName("t"), backend: server.backend())
        // Not to synchronise: a server spawned from a pool's thread dies while the worker idles.
        try await Task.sleep(for: .seconds(15))
        let children = try childProcesses(of: worker.program.processID)
        #expect(!children.isEmpty)
        let shown = try await dispatcher(
            "submit", "slogan", "after a rest", "--wait", "--option", "max_tokens=8", "--pool", worker.pool)
        #expect(shown.status == 0)
        worker.program.signal(SIGKILL)
        try await worker.program.end()
        for child in children { try await expectGone(child) }
    }

    @Test("a server that dies is started again; a job that comes meanwhile hears that the model loads, and completes")
    func restarted() async throws {
        try await withWorker(backend: Server.wheel.backend()) { worker in
            let children = try childProcesses(of: worker.program.processID)
            for child in children { kill(child, SIGKILL) }
            try await worker.program.waitFor("backend_exited")
            let shown = try await dispatcher(
                "submit", "slogan", "phoenix", "--stream", "--json", "--option", "max_tokens=8", "--pool", worker.pool)
            #expect(shown.status == 0)
            #expect(shown.output.contains(#""phase":"loading""#))
        }
    }

    @Test("a stopped worker stops its server, and exits 0", arguments: Server.allCases)
    func stops(_ server: Server) async throws {
        let worker = try await WorkerProgram.start(pool: TestEnvironment.uniqueName("t"), backend: server.backend())
        let children = try childProcesses(of: worker.program.processID)
        #expect(try await worker.stop() == 0)
        for child in children { try await expectGone(child) }
    }

    @Test("a model that is missing, no GGUF, or too large: one line, exit 1, and nothing is consumed")
    func badModels() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }  // A leftover in the temporary folder is no failure.
        let text = folder.appending(path: "text.gguf").path
        try Data("this is no model".utf8).write(to: URL(filePath: text))
        let huge = folder.appending(path: "huge.gguf").path
        try Data("GGUF".utf8).write(to: URL(filePath: huge))
        #expect(truncate(huge, 4 << 40) == 0)
        let command = try TestEnvironment.value(Server.wheel.rawValue)
        for (model, word) in [("/nonexistent.gguf", "no model file"), (text, "not a GGUF"), (huge, "memory")] {
            let worker = try await WorkerProgram.start(
                pool: TestEnvironment.uniqueName("t"),
                backend: #"type: "llama-server", command: "\#(command)", model: "\#(model)""#, waits: false)
            #expect(try await worker.program.end() == 1)
            let lines = worker.program.errors.split(separator: "\n").filter { !$0.hasPrefix("{") }
            #expect(lines.count == 1 && lines[0].contains(word), "\(worker.program.errors)")
            #expect(!worker.program.errors.contains("\"ready\""))
        }
    }

    @Test("a server at an address is used as it is, and try says that the model loads")
    func address() async throws {
        let port = try #require(FreePort.find())
        let server = try RunningProgram(
            TestEnvironment.value(Server.real.rawValue),
            [
                "-m", TestEnvironment.model(), "--host", "127.0.0.1", "--port", "\(port)", "-np", "2", "-c", "2048",
                "-t",
                "2", "--no-kv-unified",
            ], environment: ProcessInfo.processInfo.environment)
        defer { server.signal(SIGKILL) }
        try await withWorker(slots: 2, backend: #"type: "llama-server", url: "http://127.0.0.1:\#(port)", parallel: 2"#)
        {
            worker in
            let shown = try await dispatcher(
                "submit", "slogan", "tea house", "--wait", "--option", "max_tokens=12", "--pool", worker.pool)
            #expect(shown.status == 0 && !shown.output.isEmpty)
            try await cancelFreesTheSlot(worker.pool, port)
        }
        var environment = ProcessInfo.processInfo.environment
        environment["GEN_MODEL"] = try TestEnvironment.model()
        environment["GEN_LLAMA_SERVER"] = try TestEnvironment.value(Server.wheel.rawValue)
        environment["GEN_CONFIG"] = nil
        let tried = try await run(
            TestEnvironment.program("genworker"), ["try", "slogan", "tea house", "--option", "max_tokens=12"],
            environment: environment)
        #expect(tried.status == 0 && tried.errors.contains("loading") && !tried.output.isEmpty)
        let doctor = try await run(TestEnvironment.program("genworker"), ["doctor"], environment: environment)
        #expect(doctor.status == 0 && doctor.output.hasPrefix("ok"))
    }

    /// Cancels in mid-stream and asks the server itself until it shows no slot at work.
    private func cancelFreesTheSlot(_ pool: String, _ port: Int) async throws {
        let client = try TestEnvironment.client()
        var job = Job(
            id: JobID(atMilliseconds: Timestamp.now.milliseconds), kind: .reply,
            input: JobInput(text: "Tell a very long story about a river."))
        job.options.maxTokens = 900
        job.pool = pool
        try await client.submit(job)
        var asked: ContinuousClock.Instant?
        for try await item in client.watch(job.id) {
            guard case .event(let event) = item, case .chunk = event.content, asked == nil else { continue }
            #expect(try await busySlots(port) == 1)
            asked = .now
            _ = try await client.cancel(job.id, by: "test")
        }
        await client.close()
        let began = try #require(asked)
        while try await busySlots(port) > 0 {
            try #require(ContinuousClock.now - began < .seconds(5), "the slot stays busy")
        }
        print("figure: cancel to free slot as /slots shows it, real, \(ContinuousClock.now - began)")
    }

    private func busySlots(_ port: Int) async throws -> Int {
        let answer = try await HTTPClient().fetch(HTTPRequest(.get, "http://127.0.0.1:\(port)/slots"))
        let slots = try #require(try JSONParser.parse(answer.body, options: .lenient).array)
        return slots.count { $0["is_processing"]?.bool ?? false }
    }

    private func fourShortJobs(_ pool: String, _ client: Client) async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for number in 0..<4 {
                group.addTask {
                    let shown = try await dispatcher(
                        "submit", "slogan", "shop \(number)", "--wait", "--option", "max_tokens=8", "--pool", pool)
                    #expect(shown.status == 0)
                }
            }
            try await group.waitForAll()
        }
    }

    private func childProcesses(of process: Int32) throws -> [Int32] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc").compactMap { Int32($0) }.filter { child in
            guard let stat = try? String(contentsOfFile: "/proc/\(child)/stat", encoding: .utf8) else { return false }
            let fields = (stat.split(separator: ")").last ?? "").split(separator: " ")
            return fields.count > 1 && Int32(fields[1]) == process
        }
    }

    /// A process is gone when it has no entry, or is a zombie that nobody has reaped yet.
    private func expectGone(_ process: Int32) async throws {
        let deadline = ContinuousClock.now + .seconds(5)
        while ContinuousClock.now < deadline {
            guard let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8) else { return }
            if status.contains("State:\tZ") { return }
            try await Task.sleep(for: .milliseconds(20))
        }
        Issue.record("process \(process) is still there")
    }
}
