import Testing

@testable import GenShared

@Suite("Job: bodies that are none", .timeLimit(.minutes(1)))
struct JobBodyTests {
    @Test(
        "B01, B02, B03: a body that is no JSON object is malformed",
        arguments: [
            "", " ", "\0", "x", "[]", "7", "null", "true", "\"{}\"", "{", "{}x", "[{\"v\":1}]", "\u{FEFF}{}",
            "{\"v\":1,}",
            "{\"v\":1}{\"v\":1}", "{\"v\":NaN}", "{'v':1}", "v=1&id=a",
        ])
    func refusesOther(body: String) throws {
        let found = try #require(rejection(body))
        #expect(found.code == .malformed)
        #expect(found.field.isEmpty)
        #expect(found.description == found.reason)
    }

    @Test(
        "B03: what stands at the top is named",
        arguments: [("[]", "an array"), ("null", "null"), ("7", "a number"), ("\"\"", "a string")])
    func namesTheTop(body: String, kind: String) {
        #expect(rejection(body)?.reason == "the body is \(kind), not an object")
    }

    @Test(
        "B04, B09: text and numbers that are no JSON are refused wherever they stand",
        arguments: [
            #""x":"\ud800""#, #""x":"\u0000""#, #""metadata":{"a":1e400}"#, #""timeout_s":-1e999"#, #""timeout_s":01"#,
            #""v":1"#, #""\u0069d":"b""#, #""metadata":{"a":1,"a":2}"#, #""options":{"seed":1,"seed":1}"#,
            #""x":"\#u{7}""#,
        ])
    func refusesBrokenMembers(member: String) {
        #expect(rejection("\(MessageBody.least.dropLast()),\(member)}")?.code == .malformed)
    }

    @Test("B04: invalid UTF-8 in a body is malformed")
    func refusesInvalidUTF8() throws {
        var body = Array(MessageBody.least.utf8)
        let place = try #require(body.firstIndex(of: UInt8(ascii: "f")))
        body[place] = 0xFF
        #expect(rejection(body)?.code == .malformed)
    }

    @Test("B05: nesting beyond 32 levels is refused, at any depth")
    func limitsDepth() throws {
        func nested(_ depth: Int) -> String {
            let arrays = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
            return "\(MessageBody.least.dropLast()),\"metadata\":{\"a\":\(arrays)}}"
        }
        #expect(rejection(nested(30)) == nil)
        #expect(rejection(nested(31))?.code == .malformed)
        #expect(rejection(nested(100_000))?.code == .malformed)
        #expect(rejection(String(repeating: "[", count: 100_000))?.reason.contains("more than 32") == true)
    }

    @Test("B06: a body beyond its limit is refused before it is read")
    func limitsBytes() throws {
        let most = JobLimits().bodyBytes
        #expect(most == 1 << 20)
        let padding = String(repeating: " ", count: most - MessageBody.least.utf8.count)
        #expect(rejection(MessageBody.least + padding) == nil)
        let found = try #require(rejection(MessageBody.least + padding + " "))
        #expect(found.code == .malformed)
        #expect(found.reason == "the body has 1048577 bytes, 1048576 are allowed")
        #expect(rejection([UInt8](repeating: 0x5B, count: 20 << 20))?.reason.hasPrefix("the body has") == true)
    }

    @Test("the limits are the caller's")
    func usesGivenLimits() throws {
        var limits = JobLimits()
        limits.bodyBytes = MessageBody.least.utf8.count
        #expect(rejection(MessageBody.least, limits: limits) == nil)
        limits.bodyBytes -= 1
        #expect(rejection(MessageBody.least, limits: limits)?.code == .malformed)
        limits = JobLimits()
        (limits.defaultTimeoutSeconds, limits.maxTimeoutSeconds) = (5, 10)
        #expect(try Job(body: Array(MessageBody.least.utf8), limits: limits).timeoutSeconds == 5)
        #expect(rejection(try MessageBody.with("timeout_s", "11"), limits: limits)?.field == "timeout_s")
    }

    @Test("B02: every prefix of a message is malformed")
    func refusesPrefixes() {
        let body = Array(MessageBody.full.utf8)
        for end in 0..<body.count { #expect(rejection(Array(body[..<end]))?.code == .malformed) }
    }

    @Test("damage never traps, and what is still a job is written as it was read", arguments: 1...8)
    func survivesDamage(seed: UInt64) throws {
        var random = RandomJSON(seed: 500 + seed)
        for text in [MessageBody.full, MessageBody.least] {
            for _ in 0..<300 {
                let body = random.damaged(Array(text.utf8))
                // Whether it is refused is not the question here.
                guard let job = try? Job(body: body) else { continue }
                #expect(try Job(body: job.body).body == job.body)
            }
        }
    }

    @Test("any JSON in any member is a job or a rejection, never a trap", arguments: 1...4)
    func survivesAnyMember(seed: UInt64) throws {
        var random = RandomJSON(seed: 600 + seed)
        let names = [
            "v", "id", "kind", "input", "options", "lane", "pool", "created_at", "expires_at", "timeout_s", "tenant",
            "metadata", "input.text", "input.style", "input.messages", "input.schema", "input.width", "options.stop",
            "options.seed", "options.temperature", "options.model", "options.thinking", "input.guidance_scale",
        ]
        for name in names {
            for _ in 0..<20 {
                let body = try MessageBody.with(name, random.value(depth: 3).serialized, kind: .image)
                guard let found = rejection(body) else { continue }
                #expect(found.field.hasPrefix(name))
            }
        }
    }
}
