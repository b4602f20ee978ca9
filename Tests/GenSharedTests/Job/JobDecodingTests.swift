import Testing

@testable import GenShared

@Suite("Job: decoding", .timeLimit(.minutes(1)))
struct JobDecodingTests {
    @Test("four members make a job; all else has its default")
    func fillsDefaults() throws {
        let job = try Job(body: Array(MessageBody.least.utf8))
        #expect(job.id.rawValue == "job-1")
        #expect(job.kind == .slogan)
        #expect(job.input == JobInput(text: "coffee shop"))
        #expect(job.options == GenerationOptions())
        #expect(job.lane == .interactive)
        #expect(job.pool == "text")
        #expect(job.createdAt == nil)
        #expect(job.expiresAt == nil)
        #expect(job.timeoutSeconds == 600)
        #expect(job.tenant == "default")
        #expect(job.metadata == JSONObject())
    }

    @Test("every member of the contract is read")
    func readsEveryMember() throws {
        let job = try Job(body: Array(MessageBody.full.utf8))
        #expect(job.id.rawValue == "01j9z3k5m7n8p9q0r1s2t3v4w5")
        #expect(job.kind == .reply)
        #expect(job.input.style == "kind")
        #expect(job.input.messages.map(\.role) == [.system, .user, .assistant])
        #expect(job.input.messages.map(\.content) == ["Be short.", "Hi 😀", "Hello"])
        #expect(job.input.schema?["properties"]?["a"]?["type"] == .string("string"))
        #expect(job.lane == .batch)
        #expect(job.pool == "text-large")
        #expect(job.createdAt?.milliseconds == 1_796_040_000_000)
        #expect(job.expiresAt?.description == "2026-12-01T12:00:00.500Z")
        #expect(job.timeoutSeconds == 1200)
        #expect(job.tenant == "acme")
        #expect(job.metadata["nested"]?["x"] == .null)
    }

    @Test("a member that is null is not given; an unknown one is ignored")
    func ignoresNullAndUnknown() throws {
        let nulls = ["options", "lane", "pool", "created_at", "expires_at", "timeout_s", "tenant", "metadata", "x-new"]
        var text = MessageBody.least.dropLast()
        for name in nulls { text += ",\"\(name)\":null" }
        #expect(try Job(body: Array("\(text)}".utf8)) == Job(body: Array(MessageBody.least.utf8)))
    }

    @Test(
        "B07, B08: a required member must be there",
        arguments: [
            ("v", JobRejection.Code.unsupportedVersion), ("id", .badID), ("kind", .malformed), ("input", .malformed),
            ("input.text", .malformed),
        ], ["null", nil])
    func requiresMembers(member: (path: String, code: JobRejection.Code), json: String?) throws {
        let found = try #require(rejection(try MessageBody.with(member.path, json)))
        #expect(found.code == member.code)
        #expect(found.field == member.path)
        #expect(found.description.hasPrefix("\(member.path): is missing"))
    }

    @Test("B07: only version 1 is read", arguments: ["0", "2", "-1", "9223372036854775807", "1000000000000"])
    func refusesOtherVersions(json: String) throws {
        let found = try #require(rejection(try MessageBody.with("v", json)))
        #expect(found.code == .unsupportedVersion)
        #expect(found.field == "v")
    }

    @Test("B07: the version is looked at before all else")
    func looksAtVersionFirst() throws {
        #expect(rejection(#"{"v":2,"id":"/","kind":[],"input":7}"#)?.code == .unsupportedVersion)
        #expect(rejection(#"{"id":"/"}"#)?.code == .unsupportedVersion)
    }

    @Test(
        "B08: an id that could do harm in a key or a path is refused",
        arguments: ["", "{}", "a/b", "..", "*", "a\\nb", "a b", "a:b", "é", "😀", String(repeating: "a", count: 300)])
    func refusesBadIDs(id: String) throws {
        let found = try #require(rejection(try MessageBody.with("id", "\"\(id)\"")))
        #expect(found.code == .badID)
        #expect(found.field == "id")
        #expect(found.reason == "must be 1 to 64 letters, digits, _ or -")
    }

    @Test(
        "B11: an unknown kind is refused with the list of the known",
        arguments: ["", "Slogan", "poem", "slogan ", "image\\n"])
    func refusesUnknownKinds(kind: String) throws {
        let found = try #require(rejection(try MessageBody.with("kind", "\"\(kind)\"")))
        #expect(
            found == JobRejection(.invalidInput, field: "kind", reason: "is not one of slogan, rewrite, reply, image"))
    }

    @Test(
        "B09: a member of the wrong type is refused by its name",
        arguments: [
            ("v", "\"1\""), ("v", "1.5"), ("v", "true"), ("v", "18446744073709551616"), ("id", "7"), ("id", "{}"),
            ("kind", "1"), ("kind", "[\"slogan\"]"), ("input", "\"coffee shop\""), ("input", "[]"), ("input.text", "5"),
            ("options", "[]"), ("options", "\"\""), ("lane", "1"), ("pool", "{}"), ("created_at", "1796040000000"),
            ("expires_at", "true"), ("timeout_s", "\"600\""), ("timeout_s", "0.5"), ("timeout_s", "1e300"),
            ("timeout_s", "18446744073709551616"), ("tenant", "1"), ("metadata", "[]"), ("metadata", "\"x\""),
        ])
    func refusesWrongTypes(path: String, json: String) throws {
        let found = try #require(rejection(try MessageBody.with(path, json)))
        #expect(found.code == .malformed)
        #expect(found.field == path)
        #expect(found.reason.contains(", must be "))
    }

    @Test(
        "B09, B10: a value out of its bounds is refused by its name",
        arguments: [
            ("timeout_s", "0"), ("timeout_s", "-1"), ("timeout_s", "1201"), ("timeout_s", "-9223372036854775808"),
            ("lane", "\"\""), ("lane", "\"urgent\""), ("lane", "\"Batch\""), ("pool", "\"\""), ("pool", "\"a.b\""),
            ("pool", "\"#\""), ("pool", "\"ä\""), ("pool", "\"\(String(repeating: "p", count: 33))\""),
            ("tenant", "\"\""),
            ("tenant", "\"\(String(repeating: "t", count: 65))\""), ("created_at", "\"yesterday\""),
            ("expires_at", "\"\""),
            ("expires_at", "\"2026-11-30\""),
        ])
    func refusesBeyondBounds(path: String, json: String) throws {
        let found = try #require(rejection(try MessageBody.with(path, json)))
        #expect(found.code == .invalidInput)
        #expect(found.field == path)
    }

    @Test(
        "the bounds themselves are allowed; 600.0 is 600",
        arguments: [("1", 1), ("1200", 1200), ("600.0", 600), ("6e2", 600)])
    func takesBounds(json: String, seconds: Int) throws {
        #expect(try Job(body: MessageBody.with("timeout_s", json)).timeoutSeconds == seconds)
        let longest = String(repeating: "x", count: 64)
        #expect(try Job(body: MessageBody.with("tenant", "\"\(longest)\"")).tenant == longest)
    }

    @Test(
        "each kind has its pool",
        arguments: [(JobKind.slogan, "text"), (.rewrite, "text"), (.reply, "text"), (.image, "image")])
    func picksPool(kind: JobKind, pool: String) throws {
        #expect(try Job(body: MessageBody.with("kind", "\"\(kind.rawValue)\"")).pool == pool)
        #expect(Job(id: try #require(JobID("a")), kind: kind, input: JobInput(text: "x")).pool == pool)
    }

    @Test("the route wins over pool and lane of the body")
    func prefersRoute() throws {
        let body = Array(MessageBody.full.utf8)
        let routed = try Job(body: body, route: (pool: "other", lane: .interactive))
        #expect(routed.pool == "other")
        #expect(routed.lane == .interactive)
        var expected = try Job(body: body)
        (expected.pool, expected.lane) = ("other", .interactive)
        #expect(routed == expected)
        let least = try Job(body: Array(MessageBody.least.utf8), route: (pool: "image", lane: .batch))
        #expect(least.pool == "image")
        #expect(least.lane == .batch)
    }
}
