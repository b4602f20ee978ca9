import Testing

@testable import GenShared

@Suite("Job: input", .timeLimit(.minutes(1)))
struct JobInputTests {
    private func input(_ path: String, _ json: String, kind: JobKind = .slogan) throws -> JobInput {
        try Job(body: MessageBody.with(path, json, kind: kind)).input
    }

    @Test("a text of white space only is empty", arguments: ["", " ", "\\n\\t", "\\u00a0\\u2003"])
    func refusesEmptyText(text: String) throws {
        let found = try #require(rejection(try MessageBody.with("input.text", "\"\(text)\"")))
        #expect(found == JobRejection(.invalidInput, field: "input.text", reason: "is empty"))
    }

    @Test("a text is kept as it was written")
    func keepsText() throws {
        #expect(try input("input.text", "\"  -a\\r\\n😀 \"").text == "  -a\r\n😀 ")
    }

    @Test("64 KiB are the most that text and earlier turns may have together")
    func limitsPrompt() throws {
        let most = JobLimits().promptBytes
        #expect(most == 65_536)
        let text = String(repeating: "é", count: most / 2)
        #expect(rejection(try MessageBody.with("input.text", "\"\(text)\"")) == nil)
        let found = try #require(rejection(try MessageBody.with("input.text", "\"\(text)x\"")))
        #expect(found.code == .invalidInput)
        #expect(found.reason == "text and messages have 65537 bytes, 65536 are allowed")
        // "coffee shop" has 11 bytes.
        let turn = String(repeating: "x", count: most - 12)
        func turns(_ last: String) -> String {
            "[{\"role\":\"user\",\"content\":\"\(turn)\"},{\"role\":\"assistant\",\"content\":\"\(last)\"}]"
        }
        #expect(rejection(try MessageBody.with("input.messages", turns("a"))) == nil)
        #expect(rejection(try MessageBody.with("input.messages", turns("ab")))?.field == "input")
    }

    @Test("256 earlier turns are the most")
    func limitsTurns() throws {
        func turns(_ count: Int) -> String {
            "[" + Array(repeating: #"{"role":"user","content":""}"#, count: count).joined(separator: ",") + "]"
        }
        #expect(try input("input.messages", turns(256)).messages.count == 256)
        #expect(try input("input.messages", "[]").messages.isEmpty)
        let found = try #require(rejection(try MessageBody.with("input.messages", turns(257))))
        #expect(found.field == "input.messages")
        #expect(found.code == .invalidInput)
    }

    @Test(
        "a turn at fault is named by its place",
        arguments: [
            ("7", "[0]", JobRejection.Code.malformed), ("null", "[0]", .malformed), ("[]", "[0]", .malformed),
            ("{}", "[0].role", .invalidInput), (#"{"role":"user"}"#, "[0].content", .malformed),
            (#"{"role":"user","content":7}"#, "[0].content", .malformed),
            (#"{"role":"tool","content":""}"#, "[0].role", .invalidInput),
            (#"{"role":1,"content":""}"#, "[0].role", .malformed),
            (#"{"role":"User","content":""}"#, "[0].role", .invalidInput),
            (#"{"role":"user","content":"a"},{"role":"user","content":null}"#, "[1].content", .malformed),
        ])
    func namesTurns(turns: String, place: String, code: JobRejection.Code) throws {
        let found = try #require(rejection(try MessageBody.with("input.messages", "[\(turns)]")))
        #expect(found.field == "input.messages\(place)")
        #expect(found.code == code)
    }

    @Test("messages must be an array", arguments: ["{}", "\"hi\"", "1", "true"])
    func refusesOtherMessages(json: String) throws {
        #expect(rejection(try MessageBody.with("input.messages", json))?.field == "input.messages")
    }

    @Test("a style has 1 to 256 bytes")
    func limitsStyle() throws {
        #expect(try input("input.style", "\"gothic\"").style == "gothic")
        #expect(try input("input.style", "null").style == nil)
        #expect(try input("input.style", "\"\(String(repeating: "é", count: 128))\"").style != nil)
        for json in ["\"\"", "\"\(String(repeating: "x", count: 257))\"", "7", "[\"a\"]"] {
            #expect(rejection(try MessageBody.with("input.style", json))?.field == "input.style")
        }
    }

    @Test("a schema is an object")
    func readsSchema() throws {
        #expect(try input("input.schema", #"{"type":"array"}"#).schema == .object(["type": .string("array")]))
        #expect(try input("input.schema", "null").schema == nil)
        for json in ["true", "\"{}\"", "[]", "0"] {
            #expect(rejection(try MessageBody.with("input.schema", json))?.field == "input.schema")
        }
    }

    // MARK: Pictures

    @Test("a picture has defaults, other kinds have no picture")
    func fillsImageDefaults() throws {
        let image = try #require(try input("input.style", "null", kind: .image).image)
        #expect(image == ImageParameters())
        #expect((image.width, image.height, image.count, image.inferenceSteps) == (1024, 1024, 1, 30))
        #expect(image.guidanceScale == 7.5)
        #expect(image.seed == nil)
        #expect(try input("input.width", "\"wide\"", kind: .slogan).image == nil)
    }

    @Test(
        "a picture's bounds are allowed",
        arguments: [
            ("width", "64", "4096"), ("height", "64", "4096"), ("guidance_scale", "0", "50"),
            ("num_inference_steps", "1", "150"), ("seed", "0", "4294967295"), ("count", "1", "10"),
        ])
    func takesImageBounds(name: String, least: String, most: String) throws {
        #expect(rejection(try MessageBody.with("input.\(name)", least, kind: .image)) == nil)
        #expect(rejection(try MessageBody.with("input.\(name)", most, kind: .image)) == nil)
    }

    @Test(
        "a picture's value beyond its bounds is refused by its name",
        arguments: [
            ("width", "63"), ("width", "4097"), ("width", "-1024"), ("height", "0"), ("height", "50000"),
            ("guidance_scale", "-0.1"), ("guidance_scale", "50.1"), ("guidance_scale", "1e300"),
            ("num_inference_steps", "0"),
            ("num_inference_steps", "151"), ("seed", "-1"), ("seed", "4294967296"), ("count", "0"), ("count", "11"),
        ])
    func refusesImageBounds(name: String, json: String) throws {
        let found = try #require(rejection(try MessageBody.with("input.\(name)", json, kind: .image)))
        #expect(found.code == .invalidInput)
        #expect(found.field == "input.\(name)")
    }

    @Test(
        "a picture's value of the wrong type is refused by its name",
        arguments: ["width", "height", "guidance_scale", "num_inference_steps", "seed", "count"],
        ["\"5\"", "true", "[]"])
    func refusesImageTypes(name: String, json: String) throws {
        let found = try #require(rejection(try MessageBody.with("input.\(name)", json, kind: .image)))
        #expect(found.code == .malformed)
        #expect(found.field == "input.\(name)")
    }
}
