import Testing

@testable import GenShared

@Suite("Generation options", .timeLimit(.minutes(1)))
struct GenerationOptionsTests {
    private func options(_ name: String, _ json: String) throws -> GenerationOptions {
        try Job(body: MessageBody.with("options.\(name)", json)).options
    }

    @Test("every option is read")
    func readsEveryOption() throws {
        let options = try Job(body: Array(MessageBody.full.utf8)).options
        #expect(options.temperature == 0.7)
        #expect(options.topP == 0.9)
        #expect(options.minP == 0.05)
        #expect(options.repeatPenalty == 1.1)
        #expect(options.maxTokens == 64)
        #expect(options.seed == 4_294_967_295)
        #expect(options.stop == ["\n", "END"])
        #expect(options.model == "qwen2.5:7b")
        #expect(options.thinking == false)
    }

    @Test(
        "the bounds themselves are allowed",
        arguments: [
            ("temperature", "0", "2"), ("top_p", "0.01", "1"), ("min_p", "0", "1"), ("repeat_penalty", "0.01", "2"),
            ("max_tokens", "1", "8192"), ("seed", "0", "4294967295"), ("temperature", "-0.0", "2.0"),
            ("max_tokens", "1.0", "8.192e3"),
        ])
    func takesBounds(name: String, least: String, most: String) throws {
        #expect(rejection(try MessageBody.with("options.\(name)", least)) == nil)
        #expect(rejection(try MessageBody.with("options.\(name)", most)) == nil)
    }

    @Test(
        "B10: a value beyond its bounds is refused by its name",
        arguments: [
            ("temperature", "-0.1"), ("temperature", "2.1"), ("temperature", "1e308"), ("top_p", "0"), ("top_p", "-1"),
            ("top_p", "1.01"), ("min_p", "-0.01"), ("min_p", "1.01"), ("repeat_penalty", "0"), ("repeat_penalty", "-1"),
            ("repeat_penalty", "2.01"), ("max_tokens", "0"), ("max_tokens", "-1"), ("max_tokens", "8193"),
            ("max_tokens", "1000000000"), ("max_tokens", "9223372036854775807"), ("seed", "-1"), ("seed", "4294967296"),
            ("model", "\"\""), ("stop", "\"\""), ("stop", "[\"a\",\"\"]"),
        ])
    func refusesBeyondBounds(name: String, json: String) throws {
        let found = try #require(rejection(try MessageBody.with("options.\(name)", json)))
        #expect(found.code == .invalidInput)
        #expect(found.field == "options.\(name)")
    }

    @Test(
        "B09, B10: a value of the wrong type is refused by its name",
        arguments: [
            ("temperature", "\"0.5\""), ("temperature", "[]"), ("top_p", "true"), ("min_p", "{}"),
            ("repeat_penalty", "\"1\""),
            ("max_tokens", "\"64\""), ("max_tokens", "64.5"), ("max_tokens", "18446744073709551616"),
            ("max_tokens", "1e300"),
            ("seed", "0.5"), ("seed", "-18446744073709551616"), ("model", "7"), ("thinking", "1"),
            ("thinking", "\"yes\""),
            ("stop", "7"), ("stop", "{}"), ("stop", "true"),
        ])
    func refusesWrongTypes(name: String, json: String) throws {
        let found = try #require(rejection(try MessageBody.with("options.\(name)", json)))
        #expect(found.code == .malformed)
        #expect(found.field == "options.\(name)")
    }

    @Test("stop is a text or a list of at most 8, each of 1 to 256 bytes")
    func limitsStop() throws {
        #expect(try options("stop", "\"END\"").stop == ["END"])
        #expect(try options("stop", "[]").stop.isEmpty)
        #expect(try options("stop", "null").stop.isEmpty)
        let long = String(repeating: "é", count: 128)
        let list = Array(repeating: "\"\(long)\"", count: 8)
        #expect(try options("stop", "[\(list.joined(separator: ","))]").stop.count == 8)
        let refused = [
            "[\((list + list.prefix(1)).joined(separator: ","))]", "\"\(long)x\"", "[\"a\",1]", "[null]", "[[\"a\"]]",
        ]
        for json in refused {
            #expect(rejection(try MessageBody.with("options.stop", json))?.field == "options.stop")
        }
    }

    @Test("a model's name has 1 to 128 bytes")
    func limitsModel() throws {
        let name = String(repeating: "m", count: 128)
        #expect(try options("model", "\"\(name)\"").model == name)
        #expect(rejection(try MessageBody.with("options.model", "\"\(name)m\""))?.field == "options.model")
    }

    @Test("an option that is null or unknown is not given")
    func ignoresNullAndUnknown() throws {
        let names = [
            "temperature", "top_p", "min_p", "repeat_penalty", "max_tokens", "seed", "stop", "model", "thinking",
        ]
        for name in names { #expect(try options(name, "null") == GenerationOptions()) }
        #expect(try options("frequency_penalty", "99") == GenerationOptions())
    }

    @Test("B10: the limit of tokens is the caller's")
    func usesGivenLimit() throws {
        var limits = JobLimits()
        limits.maxTokens = 10
        #expect(rejection(try MessageBody.with("options.max_tokens", "10"), limits: limits) == nil)
        let found = try #require(rejection(try MessageBody.with("options.max_tokens", "11"), limits: limits))
        #expect(found.description == "options.max_tokens: is 11, must be 1 to 10")
    }

    @Test("what is set wins over the defaults, one by one")
    func fillsFromDefaults() {
        var defaults = GenerationOptions()
        (defaults.temperature, defaults.topP, defaults.minP, defaults.repeatPenalty) = (0.1, 0.2, 0.3, 0.4)
        (defaults.maxTokens, defaults.seed, defaults.stop, defaults.model) = (5, 6, ["d"], "default")
        defaults.thinking = true
        #expect(GenerationOptions().filled(from: defaults) == defaults)
        #expect(defaults.filled(from: GenerationOptions()) == defaults)
        var wishes = GenerationOptions()
        (wishes.temperature, wishes.seed, wishes.stop, wishes.thinking) = (0, 0, ["w"], false)
        var expected = defaults
        (expected.temperature, expected.seed, expected.stop, expected.thinking) = (0, 0, ["w"], false)
        #expect(wishes.filled(from: defaults) == expected)
    }
}
