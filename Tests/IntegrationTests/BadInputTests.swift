import Foundation
import GenShared
import GenTestSupport
import Testing

extension DeadQueueUse {
    /// Messages and command lines that are wrong: a clear answer, nothing lost, and the worker goes on.
    @Suite("Bad input", .timeLimit(.minutes(3)))
    struct BadInputTests {
        @Test(
            "B01 to B11: messages that are no jobs go to the dead queue with their reason, and the next job runs")
        func messages() async throws {
            try await withWorker { worker in
                let publisher = AMQPPublisher(url: try TestEnvironment.amqpURL(), name: "bad-input-test")
                let messages = badMessages()
                for message in messages {
                    let outcome = try await publisher.publish(
                        AMQPMessage(
                            exchange: Topology.jobs, routingKey: "\(worker.pool).interactive", body: message.body,
                            messageID: message.id, type: nil), within: .seconds(20))
                    #expect(outcome == .confirmed)
                }
                let shown = try await dispatcher("submit", "reply", "still here", "--wait", "--pool", worker.pool)
                #expect(shown.status == 0)
                let dead = try await deadQueue()
                for message in messages {
                    let start = Data(message.body.prefix(4096)).base64EncodedString()
                    let found = dead.contains {
                        $0["body"]?.string == start && $0["bytes"]?.integer == Int64(message.body.count)
                            && $0["reason"]?.string == message.reason.rawValue && $0["error"]?.string?.isEmpty == false
                    }
                    #expect(found, "\(message.reason): \(String(decoding: message.body.prefix(80), as: UTF8.self))")
                }
                await publisher.close()
            }
        }

        private typealias BadMessage = (body: [UInt8], id: String?, reason: JobRejection.Code)

        private func badMessages() -> [BadMessage] {
            let deep = String(repeating: "[", count: 100_000)
            let malformed: [[UInt8]] = [
                [], Array("not json".utf8), Array("[1,2]".utf8), Array("null".utf8), Array("7".utf8),
                Array(#"{"v":1"#.utf8),
                Array(#"{"v":1}{}"#.utf8), Array(deep.utf8), [0x7B, 0xFF, 0x7D],
                message(#""options":{"max_tokens":1e400}"#), message(#""options":{"max_tokens":NaN}"#),
                message(#""options":{"seed":18446744073709551616}"#), message(#""options":{"temperature":"5"}"#),
                message(#""input":{"text":"\ud800"}"#), message(#""input":{"text":"a\u0000"}"#),
                message(#""input":{"text":"x"},"input":{"text":"y"}"#),
                Array(repeating: UInt8(ascii: " "), count: 20 << 20),
            ]
            let invalid: [[UInt8]] = [
                message(#""kind":"poem""#), message(#""options":{"max_tokens":0}"#),
                message(#""options":{"max_tokens":-1}"#),
                message(#""options":{"max_tokens":1000000000}"#), message(#""timeout_s":-9223372036854775808"#),
                message(#""created_at":"yesterday""#),
                message(#""input":{"text":"\#(String(repeating: "x", count: 70_000))"}"#),
            ]
            let versions = [
                #"{"v":2,"id":"a","kind":"reply","input":{}}"#, #"{"id":"a","kind":"reply","input":{"text":"x"}}"#,
            ]
            let ids = ["../../etc", "a{b}", "..", "*", "a\\n", String(repeating: "i", count: 300), "😀", ""]
            var messages: [BadMessage] = []
            for body in malformed { messages.append((body, nil, .malformed)) }
            for body in invalid { messages.append((body, nil, .invalidInput)) }
            for body in versions { messages.append((Array(body.utf8), nil, .unsupportedVersion)) }
            for id in ids { messages.append((message("\"id\":\"\(id)\""), nil, .badID)) }
            messages.append((Array(#"{"v":1,"kind":"reply","input":{"text":"x"}}"#.utf8), nil, .badID))
            messages.append((message(#""id":"one""#), "two", .badID))
            return messages
        }

        private func deadQueue() async throws -> [JSONValue] {
            let listed = try await python("bad_messages.py", "dead")
            #expect(listed.status == 0, "\(listed.errors)")
            return try listed.output.split(separator: "\n").map { try JSONParser.parse(String($0)) }
        }

        private func record(_ id: String) async throws -> JobRecord {
            let client = try TestEnvironment.client()
            let job = try #require(JobID(id))
            let record = try await client.record(job)
            await client.close()
            return try #require(record)
        }

        private func python(
            _ script: String, _ arguments: String...
        ) async throws -> (status: Int32, output: String, errors: String) {
            let path = URL(filePath: #filePath).deletingLastPathComponent().appending(path: script).path
            return try await run(
                TestEnvironment.value("GEN_TEST_PYTHON"),
                [path, TestEnvironment.value("GEN_TEST_AMQP_URL")] + arguments,
                environment: ["PATH": "/usr/bin:/bin"])
        }

        @Test("B13, B14: headers of every kind change nothing, and six copies of a message are one job with one end")
        func headers() async throws {
            try await withWorker { worker in
                let id = TestEnvironment.uniqueName("exotic")
                let published = try await python("bad_messages.py", "headers", worker.pool, id)
                #expect(published.status == 0, "\(published.errors)")
                let shown = try await dispatcher("watch", id, "--json", "--wait-for-job", "20s")
                #expect(shown.status == 0 && shown.output.components(separatedBy: #""type":"completed""#).count == 2)
                let record = try await record(id)
                #expect(record.attempt == 1 && record.failures == 0)
            }
        }

        @Test("B15: a job made in 1970 or in the future runs, and its waiting time makes sense")
        func clocks() async throws {
            try await withWorker { worker in
                let publisher = AMQPPublisher(url: try TestEnvironment.amqpURL(), name: "bad-input-test")
                for time in ["1970-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", "2026-02-28T23:59:60+14:00"] {
                    let id = TestEnvironment.uniqueName("clock")
                    let body = #"{"v":1,"id":"\#(id)","kind":"reply","input":{"text":"x"},"created_at":"\#(time)"}"#
                    _ = try await publisher.publish(
                        AMQPMessage(
                            exchange: Topology.jobs, routingKey: "\(worker.pool).batch", body: Array(body.utf8),
                            messageID: id, type: nil), within: .seconds(20))
                    #expect(try await dispatcher("watch", id, "--wait-for-job", "20s").status == 0)
                    let record = try await record(id)
                    guard case .completed(let completion)? = record.ending else { continue }
                    #expect(completion.stats.queueMilliseconds >= 0)
                    // The queue wins over the body, which says nothing of the lane.
                    #expect(record.lane == "batch")
                }
                await publisher.close()
            }
        }

        @Test("B10: a job with a wrong option but a good id ends as failed, and its watcher is told why")
        func salvaged() async throws {
            try await withWorker { worker in
                let id = TestEnvironment.uniqueName("wrong")
                let publisher = AMQPPublisher(url: try TestEnvironment.amqpURL(), name: "bad-input-test")
                async let watching = dispatcher("watch", id, "--wait-for-job", "20s")
                let body = #"{"v":1,"id":"\#(id)","kind":"reply","input":{"text":"x"},"options":{"top_p":7}}"#
                _ = try await publisher.publish(
                    AMQPMessage(
                        exchange: Topology.jobs, routingKey: "\(worker.pool).interactive", body: Array(body.utf8),
                        messageID: id, type: "reply"), within: .seconds(20))
                let shown = try await watching
                #expect(shown.status == 1 && shown.errors.contains("top_p"))
                await publisher.close()
            }
        }

        @Test(
            "B18, B19, B21, B24: wrong command lines end with exit code 2 and one clear line",
            arguments: [
                [], ["frobnicate"], ["submit"], ["submit", "poem", "x"], ["submit", "reply", "  "],
                ["submit", "reply", "x", "--lane", "fast"], ["submit", "reply", "x", "--timeout", "0"],
                ["submit", "reply", "x", "--timeout", "-1"], ["submit", "reply", "x", "--timeout", "1e99"],
                ["submit", "reply", "x", "--option", "max_tokens"],
                ["submit", "reply", "x", "--option", "max_tokens=0"],
                ["submit", "reply", "x", "--option", "nonsense=1"], ["submit", "reply", "x", "--wait", "--stream"],
                ["submit", "reply", "x", "--wait", "--wait"], ["submit", "reply", "x", "--id", "a/b"],
                ["submit", "reply", "x", "--unknown"], ["submit", "reply", "x", "y", "z"], ["watch"], ["watch", "a b"],
                ["watch", "abc", "--from", "1"], ["status", ""], ["cancel"], ["setup", "--pool", "a.b"],
                ["submit", "reply", "x", "--messages", "/nonexistent"],
                ["submit", "reply", "x", "--messages", "/dev/zero"],
            ] as [[String]])
        func commandLines(_ arguments: [String]) async throws {
            let result = try await run(
                TestEnvironment.program("gendispatcher"), arguments, environment: TestEnvironment.programEnvironment(),
                within: .seconds(20))
            #expect(result.status == 2)
            #expect(result.errors.hasPrefix("gendispatcher: ") && result.output == "")
        }

        @Test(
            "B22, B23: wrong URLs are refused by name without showing the password",
            arguments: [
                ("GEN_AMQP_URL", "http://u:hunter2@h/"), ("GEN_AMQP_URL", "amqp://u:hunter2@h:99999/"),
                ("GEN_AMQP_URL", "u:hunter2@h"), ("GEN_AMQP_URL", "amqp://u:hunter2@h/?heartbeat=-1"),
                ("GEN_REDIS_URL", "rediss://u:hunter2@h"), ("GEN_REDIS_URL", "redis://u:hunter2@h/abc"),
                ("GEN_REDIS_URL", "redis://u:hunter2@:6379"), ("GEN_REDIS_URL", "redis://u:hunter2%zz@h"),
            ])
        func urls(_ variable: String, _ url: String) async throws {
            var environment = try TestEnvironment.programEnvironment()
            environment[variable] = url
            let result = try await run(
                TestEnvironment.program("gendispatcher"), ["status", "x"], environment: environment,
                within: .seconds(20))
            #expect(result.status == 2)
            #expect(result.errors.contains(variable) && !result.errors.contains("hunter2"))
        }

        @Test("servers that are away end with exit code 3, within the deadline, and name the server")
        func unreachable() async throws {
            for variable in ["GEN_AMQP_URL", "GEN_REDIS_URL"] {
                var environment = try TestEnvironment.programEnvironment()
                environment[variable] = variable == "GEN_AMQP_URL" ? "amqp://127.0.0.1:1" : "redis://127.0.0.1:1"
                let began = ContinuousClock.now
                let result = try await run(
                    TestEnvironment.program("gendispatcher"), ["submit", "reply", "x", "--deadline", "2s"],
                    environment: environment, within: .seconds(20))
                #expect(result.status == 3 && result.errors.contains("127.0.0.1:1"))
                #expect(ContinuousClock.now - began < .seconds(6))
            }
        }

        @Test("B20: text from standard input: a byte order mark goes, what is not UTF-8 is refused with its place")
        func standardInput() async throws {
            try await withWorker { worker in
                let shown = try await dispatcher(
                    "submit", "reply", "-", "--wait", "--pool", worker.pool, input: "\u{FEFF}from a pipe\n")
                #expect(shown.status == 0 && shown.output.contains("from a pipe"))
                #expect(try await dispatcher("submit", "reply", "-", "--pool", worker.pool, input: "").status == 2)
            }
        }

        private func message(_ member: String) -> [UInt8] {
            let name = member.split(separator: "\"")[0]
            var members = [
                #""v":1"#, #""id":"bad-\#(UInt32.random(in: 0 ... .max))""#, #""kind":"reply""#,
                #""input":{"text":"x"}"#,
            ]
            members.removeAll { $0.hasPrefix("\"\(name)\"") }
            return Array("{\((members + [member]).joined(separator: ","))}".utf8)
        }
    }
}
