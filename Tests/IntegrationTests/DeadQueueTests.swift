import Foundation
import GenShared
import GenTestSupport
import Testing

extension DeadQueueUse {
    /// Looking at dead messages, replaying and dropping them.
    ///
    /// One after the other: whoever looks hides the messages from others for that time.
    @Suite("Dead queue", .serialized, .timeLimit(.minutes(3)))
    struct DeadQueueTests {
        @Test("a dead message is listed and shown with reason, error and record, and stays where it is")
        func look() async throws {
            let id = try await bury(reason: "backend_error", error: "out of\u{1B}[2J memory")
            for _ in 0..<2 {
                let list = try await dispatcher("dead", "list", "--reason", "backend_error")
                let line = try #require(list.output.split(separator: "\n").first { $0.hasPrefix(id) })
                #expect(line.contains("reply") && line.contains("text.interactive") && line.contains("no record"))
                #expect(line.contains("memory") && !line.contains("\u{1B}"))
            }
            let shown = try await dispatcher("dead", "show", id, "--json")
            let json = try JSONParser.parse(shown.output)
            #expect(json["reason"]?.string == "backend_error" && json["body"]?["input"]?["text"]?.string == "x")
            #expect(try await dispatcher("dead", "drop", id, "--dry-run").output.contains("would be dropped"))
            #expect(try await dispatcher("dead", "drop", id).status == 0)
            #expect(try await dispatcher("dead", "show", id).status == 4)
            #expect(try await dispatcher("dead", "drop", id).status == 4)
        }

        @Test("JSON on a terminal holds nothing that this would obey")
        func terminal() async throws {
            let reason = TestEnvironment.uniqueName("r")
            let id = try await bury(reason: reason, error: "csi \u{9B}2J mark \u{202E}")
            let program = try TestEnvironment.program("gendispatcher")
            for words in ["dead show \(id) --json", "dead list --reason \(reason) --json"] {
                let shown = try await GenTestSupport.run(
                    "/usr/bin/script", ["-qec", "\(program) \(words)", "/dev/null"],
                    environment: try TestEnvironment.programEnvironment())
                #expect(shown.output.contains(#"\u009b2J mark \u202e"#), "\(shown)")
                #expect(!shown.output.unicodeScalars.contains { $0 == "\u{9B}" || $0 == "\u{202E}" })
            }
            #expect(try await dispatcher("dead", "drop", id).status == 0)
        }

        @Test("a message that is no job can be listed, shown as text and dropped, but not replayed")
        func malformed() async throws {
            let text = "no \u{1B}]0;job\u{7} \(TestEnvironment.uniqueName("m"))"
            try await publish(Array(text.utf8), id: nil, reason: "malformed", error: "it is not JSON")
            let name = "sha256:\(try SHA256Digest(of: Array(text.utf8)).description.prefix(12))"
            let list = try await dispatcher("dead", "list", "--reason", "malformed")
            #expect(list.output.contains(name))
            let shown = try await dispatcher("dead", "show", name)
            #expect(shown.status == 0 && shown.output.contains("]0;job") && !shown.output.contains("\u{1B}"))
            let replayed = try await dispatcher("dead", "replay", name)
            #expect(replayed.status == 1 && replayed.errors.contains("is no job"))
            #expect(try await dispatcher("dead", "drop", name).status == 0)
            #expect(try await dispatcher("dead", "show", name).status == 4)
        }

        @Test("a replayed job runs under a new id that names the old one, and once, however often it is replayed")
        func replay() async throws {
            try await withWorker { worker in
                let id = try await bury(pool: worker.pool, reason: "backend_error", expires: true)
                #expect(try await dispatcher("dead", "replay", id, "--dry-run").output.contains("would be replayed"))
                let replayed = try await dispatcher("dead", "replay", id)
                let new = String(try #require(replayed.output.split(separator: " ").last).dropLast())
                #expect(replayed.status == 0 && new != id)
                #expect(try await dispatcher("watch", new).output.contains("x"))
                let message = try JSONParser.parse(await QueueTool.redis("HGET", "gen:{\(new)}:job", "message"))
                #expect(message["metadata"]?["replay_of"]?.string == id)
                #expect(try await dispatcher("dead", "replay", id).status == 4)
                // As after a crash between the submission and the acknowledgement.
                _ = try await bury(id: id, pool: worker.pool, reason: "backend_error", expires: true)
                let again = try await dispatcher("dead", "replay", id)
                #expect(again.output == replayed.output)
                #expect(try await QueueTool.redis("HGET", "gen:{\(new)}:job", "attempt") == "1")
            }
        }

        @Test("a job that ended otherwise, or may yet run, is neither listed nor replayed")
        func notDead() async throws {
            for (state, isKept) in [("completed", false), ("cancelled", false), ("running", true)] {
                let reason = TestEnvironment.uniqueName("r")
                let id = try await bury(reason: reason)
                _ = try await QueueTool.redis("HSET", "gen:{\(id)}:job", "state", state)
                let list = try await dispatcher("dead", "list", "--reason", reason)
                #expect(!list.output.contains(id) && list.errors.contains("not listed: 1 of jobs"))
                #expect(try await dispatcher("dead", "replay", id, "--dry-run").errors.contains("is \(state)"))
                let replayed = try await dispatcher("dead", "replay", "--reason", reason)
                #expect(replayed.output.isEmpty && replayed.errors.contains("is \(state)"))
                #expect(replayed.status == (isKept ? 1 : 0))
                #expect(try await dispatcher("dead", "show", id).status == (isKept ? 0 : 4))
                if isKept { #expect(try await dispatcher("dead", "drop", id).status == 0) }
                _ = try await QueueTool.redis("DEL", "gen:{\(id)}:job")
            }
        }

        @Test("a replay that no queue takes leaves the message where it is")
        func refusedReplay() async throws {
            let id = try await bury(pool: TestEnvironment.uniqueName("no"), reason: "backend_error")
            #expect(try await dispatcher("dead", "replay", id).status == 5)
            #expect(try await dispatcher("dead", "show", id).status == 0)
            #expect(try await dispatcher("dead", "drop", id).status == 0)
        }

        @Test("dropping all needs --yes where nobody can be asked")
        func dropAll() async throws {
            #expect(try await dispatcher("dead", "drop", "--all").status == 2)
            #expect(try await dispatcher("dead", "drop", "--all", "--dry-run").status == 0)
        }

        @Test("an empty result is no error")
        func nothing() async throws {
            let list = try await dispatcher("dead", "list", "--reason", TestEnvironment.uniqueName("r"))
            #expect(list.status == 0 && list.output.contains("No dead message"))
        }

        private func bury(
            id: String = TestEnvironment.uniqueName("dead-"), pool: String = "text", reason: String,
            error: String = "e",
            expires: Bool = false
        ) async throws -> String {
            let expiry = expires ? #","expires_at":"2026-01-01T00:00:00Z""# : ""
            let body = #"{"v":1,"id":"\#(id)","kind":"reply","input":{"text":"x"},"pool":"\#(pool)"\#(expiry)}"#
            try await publish(Array(body.utf8), id: id, pool: pool, reason: reason, error: error)
            return id
        }

        private func publish(
            _ body: [UInt8], id: String?, pool: String = "text", reason: String, error: String
        ) async throws {
            _ = try await dispatcher("setup", "--pool", "text")
            let publisher = AMQPPublisher(url: try TestEnvironment.amqpURL(), name: "dead-test")
            var message = AMQPMessage(
                exchange: Topology.dead, routingKey: "\(pool).interactive", body: body, messageID: id, type: "reply")
            message.headers = [("x-gen-reason", reason), ("x-gen-error", error)]
            #expect(try await publisher.publish(message, within: .seconds(10)) == .confirmed)
            await publisher.close()
        }
    }
}
