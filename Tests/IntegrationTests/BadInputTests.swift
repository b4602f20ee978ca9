import Foundation
import GenShared
import GenTestSupport
import Testing

/// Messages and command lines that are wrong: a clear answer, nothing lost, and the worker goes on.
@Suite("Bad input", .timeLimit(.minutes(3)))
struct BadInputTests {
    @Test("messages that are no jobs go to the dead queue with their reason, and the next job runs")
    func messages() async throws {
        try await withWorker { worker in
            let publisher = AMQPPublisher(url: try TestEnvironment.amqpURL(), name: "bad-input-test")
            let deep = String(repeating: "[", count: 100_000)
            let bodies: [[UInt8]] = [
                [], Array("not json".utf8), Array("[1,2]".utf8), Array("null".utf8), Array(#"{"v":1"#.utf8),
                Array(deep.utf8), [0x7B, 0xFF, 0x7D], Array(#"{"v":2,"id":"a","kind":"reply","input":{}}"#.utf8),
                Array(#"{"id":"a","kind":"reply","input":{"text":"x"}}"#.utf8),
                message(#""id":"../../etc""#), message(#""id":"a{b}""#), message(#""kind":"poem""#),
                message(#""options":{"max_tokens":0}"#), message(#""options":{"max_tokens":1e400}"#),
                message(#""options":{"seed":18446744073709551616}"#), message(#""options":{"temperature":"hot"}"#),
                message(#""timeout_s":-9223372036854775808"#), message(#""input":{"text":"\ud800"}"#),
                message(#""input":{"text":"x"},"input":{"text":"y"}"#), message(#""created_at":"yesterday""#),
                message(#""input":{"text":"\#(String(repeating: "x", count: 70_000))"}"#),
                Array(repeating: UInt8(ascii: " "), count: 2 << 20),
            ]
            for body in bodies {
                let outcome = try await publisher.publish(
                    AMQPMessage(
                        exchange: Topology.jobs, routingKey: "\(worker.pool).interactive", body: body, messageID: nil,
                        type: nil), within: .seconds(20))
                #expect(outcome == .confirmed)
            }
            let shown = try await dispatcher("submit", "reply", "still here", "--wait", "--pool", worker.pool)
            #expect(shown.status == 0)
            await publisher.close()
        }
    }

    @Test("a job with a wrong option but a good id ends as failed, and its watcher is told why")
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
        "wrong command lines end with exit code 2 and one clear line",
        arguments: [
            [], ["frobnicate"], ["submit"], ["submit", "poem", "x"], ["submit", "reply", "  "],
            ["submit", "reply", "x", "--lane", "fast"], ["submit", "reply", "x", "--timeout", "0"],
            ["submit", "reply", "x", "--timeout", "-1"], ["submit", "reply", "x", "--timeout", "1e99"],
            ["submit", "reply", "x", "--option", "max_tokens"], ["submit", "reply", "x", "--option", "max_tokens=0"],
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
        "wrong URLs are refused by name without showing the password",
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
            TestEnvironment.program("gendispatcher"), ["status", "x"], environment: environment, within: .seconds(20))
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

    @Test("text from standard input: a byte order mark goes, what is not UTF-8 is refused with its place")
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
            #""v":1"#, #""id":"bad-\#(UInt32.random(in: 0 ... .max))""#, #""kind":"reply""#, #""input":{"text":"x"}"#,
        ]
        members.removeAll { $0.hasPrefix("\"\(name)\"") }
        return Array("{\((members + [member]).joined(separator: ","))}".utf8)
    }
}
