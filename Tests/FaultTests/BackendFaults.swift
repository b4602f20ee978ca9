import Foundation
import GenShared
import GenTestSupport
import Testing

extension FaultTests {
    /// What generates fails, lies, hangs or goes on for ever.
    @Suite("Backend", .timeLimit(.minutes(5)))
    struct BackendFaults {
        /// Nobody waits on a fake server's thread that has to look again a little later.
        private static func pause() { usleep(10_000) }

        private static let timers = #"timers: { first_event: "2s", gap: "2s" },"#

        /// Plays a scenario with a fake server behind the worker.
        private func play(
            _ name: String, slicing: Bool = false, _ answer: @escaping FakeChatServer.Answer,
            _ body: (FaultStage, FakeChatServer, WorkerProgram) async throws -> Void
        ) async throws {
            try await FaultStage.play(name) { stage in
                let server = FakeChatServer(answer)
                let proxy = try FaultProxy(to: server.port)
                if slicing { proxy.set(.oneByteAtATime, .toClient) }
                let worker = try await stage.worker(
                    backend: server.backend(port: proxy.port), more: Self.timers, throughProxies: false)
                try await body(stage, server, worker)
            }
        }

        /// Submits one job that must end with the text of `good`.
        private func submit(_ stage: FaultStage, expected: String? = "Hello world") async throws -> JobID {
            let job = stage.job(1)
            try await stage.client.submit(job)
            stage.note(job.id, .accepted, expected: expected)
            stage.watch(job.id)
            return job.id
        }

        private static func good(_ connection: ScriptedServer.Connection) {
            connection.beginStream()
            connection.sendPiece("Hello ")
            connection.sendPiece("world")
            connection.endStream()
        }

        @Test("F49 llama-server killed in the middle: the attempt fails, it is started again, and the job completes")
        func f49Killed() async throws {
            try await FaultStage.play("F49") { stage in
                let worker = try await stage.worker(backend: llama(), throughProxies: false)
                let id = try await long(stage)
                let server = try child(of: worker.program.processID)
                kill(server, SIGKILL)
                try await stage.waitFor(id, within: .seconds(60)) {
                    if case .retrying = $0.content { true } else { false }
                }
                try await stage.waitForText(id, attempt: 2, within: .seconds(90))
                try await stage.cancel(id)
                try await stage.settle(rules: .attempts(3))
            }
        }

        @Test("F50 llama-server frozen: the pause is noticed, a cancel works meanwhile, and another attempt completes")
        func f50Frozen() async throws {
            try await FaultStage.play("F50") { stage in
                let worker = try await stage.worker(backend: llama(), more: Self.timers, throughProxies: false)
                let (first, second) = (try await long(stage), try await long(stage))
                let server = try child(of: worker.program.processID)
                kill(server, SIGSTOP)
                defer { kill(server, SIGCONT) }
                let began = ContinuousClock.now
                try await stage.cancel(first)
                try await stage.waitForEnd(first, within: .seconds(10))
                #expect(ContinuousClock.now - began < .seconds(2))
                try await stage.waitFor(second) { if case .retrying = $0.content { true } else { false } }
                kill(server, SIGCONT)
                try await stage.waitForText(second, attempt: 2, within: .seconds(90))
                try await stage.cancel(second)
                try await stage.settle(rules: .attempts(4))
            }
        }

        private func llama() throws -> String {
            """
            type: "llama-server", command: "\(try TestEnvironment.value("GEN_TEST_LLAMA_REAL"))",
            model: "\(try TestEnvironment.model())", parallel: 2, context: 2048, threads: 1
            """
        }

        /// A job that generates for long enough to be harmed.
        private func long(_ stage: FaultStage) async throws -> JobID {
            let job = stage.job(1)
            try await stage.client.submit(job)
            stage.note(job.id, .accepted, expected: nil)
            stage.watch(job.id)
            try await stage.waitForText(job.id)
            return job.id
        }

        private func child(of process: Int32) throws -> Int32 {
            for entry in try FileManager.default.contentsOfDirectory(atPath: "/proc") {
                guard let number = Int32(entry),
                    // A process may be gone by the time it is read.
                    let stat = try? String(contentsOfFile: "/proc/\(entry)/stat", encoding: .utf8),
                    let parent = stat.split(separator: ")").last?.split(separator: " ").dropFirst().first
                else { continue }
                if Int32(parent) == process { return number }
            }
            throw FaultError("process \(process) has no child")
        }

        @Test("F51 only signs of life and no text: given up after the gap, another attempt completes")
        func f51KeepAlives() async throws {
            try await play("F51") { connection, number in
                guard number == 1 else { return Self.good(connection) }
                connection.beginStream()
                while connection.send(": ping\n\n") { Self.pause() }
            } _: { stage, _, _ in
                let id = try await submit(stage)
                try await stage.waitForEnd(id)
                try await stage.settle(rules: .attempts(2))
            }
        }

        enum Truncation: CaseIterable { case close, reset, chunk }

        @Test("F52 a stream without its end mark is never a success", arguments: Truncation.allCases)
        func f52Truncated(_ how: Truncation) async throws {
            try await play("F52") { connection, number in
                guard number == 1 else { return Self.good(connection) }
                if how == .chunk {
                    connection.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n400\r\ndata: {\"cho")
                } else {
                    connection.beginStream()
                    connection.sendPiece("Hello ")
                    if how == .reset { connection.reset() }
                }
            } _: { stage, server, _ in
                let id = try await submit(stage)
                try await stage.waitForEnd(id)
                #expect(server.generations == 2)
                try await stage.settle(rules: .attempts(2))
            }
        }

        struct Status: CustomTestStringConvertible {
            var line: String
            var headers = ""
            /// Whether another attempt may help.
            var retried: Bool
            var testDescription: String { line }
        }

        private static let statuses = [
            Status(line: "429 Too Many Requests", headers: "Retry-After: 1000000000\r\n", retried: true),
            Status(line: "500 Internal Server Error", retried: true), Status(line: "529 Overloaded", retried: true),
            Status(line: "503 Service Unavailable", headers: "Retry-After: -1\r\n", retried: true),
            Status(line: "401 Unauthorized", retried: false), Status(line: "400 Bad Request", retried: false),
        ]

        @Test("F53 an error status is tried again where that may help, and not where it cannot", arguments: statuses)
        func f53Statuses(_ status: Status) async throws {
            try await play("F53") { connection, number in
                guard number == 1 else { return Self.good(connection) }
                connection.sendError(status.line, headers: status.headers)
            } _: { stage, server, _ in
                let id = try await submit(stage, expected: status.retried ? "Hello world" : nil)
                try await stage.waitForEnd(id)
                #expect(try await stage.record(id).state == (status.retried ? .completed : .failed))
                #expect(server.generations == (status.retried ? 2 : 1))
                try await stage.settle(rules: .attempts(2, ends: ["completed", "failed"]))
            }
        }

        @Test("F54 a backend that goes on after its client left: the cancel's end comes within 2 s all the same")
        func f54IgnoresDisconnect() async throws {
            try await play("F54") { connection, _ in
                connection.beginStream()
                connection.sendPiece("Hello")
                // Neither reads nor writes: it never notices.
                for _ in 0..<2000 { Self.pause() }
            } _: { stage, _, _ in
                let id = try await submit(stage, expected: nil)
                try await stage.waitForText(id)
                let began = ContinuousClock.now
                try await stage.cancel(id)
                try await stage.waitForEnd(id)
                #expect(ContinuousClock.now - began < .seconds(2))
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F55 one byte at a time, characters and line ends split anywhere: the same text")
        func f55SlowDrip() async throws {
            try await play("F55", slicing: true) { connection, _ in
                connection.beginStream()
                for piece in ["Grüße ", "aus 日本 ", "🚋 und\\n", "\\ud83d\\ude00 Café"] {
                    connection.sendPiece(piece, lineEnd: "\r\n")
                }
                connection.endStream(lineEnd: "\r\n")
            } _: { stage, _, _ in
                let id = try await submit(stage, expected: "Grüße aus 日本 🚋 und\n😀 Café")
                try await stage.waitForEnd(id)
                try await stage.settle(rules: .attempts(1))
            }
        }

        enum Flood: CaseIterable { case line, events, endless }

        @Test(
            "F56 a line of 10 MB, 100,000 tiny events, no end at all: a limit with a name, memory bounded",
            arguments: Flood.allCases)
        func f56Flood(_ flood: Flood) async throws {
            try await play("F56") { connection, _ in
                connection.beginStream()
                switch flood {
                case .line:
                    connection.send("data: ")
                    let block = [UInt8](repeating: 0x78, count: 65_536)
                    for _ in 0..<160 where !connection.send(block) { return }
                case .events:
                    for _ in 0..<100_000 where !connection.sendPiece("x") { return }
                    connection.endStream()
                case .endless:
                    let text = String(repeating: "x", count: 1000)
                    while connection.sendPiece(text) {}
                }
            } _: { stage, _, worker in
                let id = try await submit(
                    stage, expected: flood == .events ? String(repeating: "x", count: 100_000) : nil)
                try await stage.waitForEnd(id, within: .seconds(90))
                let record = try await stage.record(id)
                #expect(record.state == (flood == .events ? .completed : .failed))
                if case .failed(let failure, _)? = record.ending { print("figure: F56 \(flood): \(failure.message)") }
                let resident = try ProcessFigures(worker.program.processID).residentKilobytes
                print("figure: F56 \(flood): resident \(resident) kB")
                #expect(resident < 80_000)
                try await stage.settle(rules: .attempts(1, ends: ["completed", "failed"]))
            }
        }

        @Test("F57 a kept connection dies between two jobs: one generation an attempt, no silent repetition")
        func f57KeptConnection() async throws {
            try await play("F57") { connection, _ in
                // Promises to keep the connection, and ends it after the answer.
                let body =
                    "data: {\"choices\":[{\"delta\":{\"content\":\"Hello world\"},\"finish_reason\":\"stop\"}]}\n\n"
                    + "data: [DONE]\n\n"
                connection.send(
                    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: keep-alive\r\n"
                        + "Content-Length: \(body.utf8.count)\r\n\r\n\(body)")
            } _: { stage, server, _ in
                for _ in 0..<5 {
                    let id = try await submit(stage)
                    try await stage.waitForEnd(id)
                }
                #expect(server.generations == 5)
                try await stage.settle(rules: .attempts(1))
            }
        }

        @Test("F58 a backend that takes the connection and never answers: a cancel works meanwhile, a timer ends it")
        func f58NeverAnswers() async throws {
            try await play("F58") { connection, number in
                guard number <= 2 else { return Self.good(connection) }
                for _ in 0..<2000 { Self.pause() }
            } _: { stage, server, _ in
                let (first, second) = (try await submit(stage, expected: nil), try await submit(stage))
                try await poll(within: .seconds(20)) { server.generations == 2 }
                let began = ContinuousClock.now
                try await stage.cancel(first)
                try await stage.waitForEnd(first)
                #expect(ContinuousClock.now - began < .seconds(2))
                try await stage.waitForEnd(second)
                try await stage.settle(rules: .attempts(2))
            }
        }
    }
}
