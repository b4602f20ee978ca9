import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

@Suite("Streamed chat completion")
struct ChatStreamTests {
    static let stream = """
        : ping\r
        \r
        data: {"choices":[{"index":0,"finish_reason":null,"delta":{"role":"assistant","content":null}}]}

        data: {"choices":[{"index":0,"delta":{"role":"assistant"}}],"prompt_progress":{"total":8,"processed":4}}

        event: message
        data:{"choices":[{"index":0,"delta":{"reasoning_content":"hm"}}]}

        data: {"choices":[{"index":0,"delta":
        data: {"content":"Grüße 🚋"}}]}

        data: {"choices":[{"index":1,"delta":{"content":"other"}},{"index":0,"delta":{"content":"!"}}]}\r
        \r
        data: {"choices":[]}

        data: {"choices":[{"index":0,"finish_reason":"length","delta":{}}]}

        data: {"choices":[],"usage":{"prompt_tokens":8,"completion_tokens":3,"prompt_tokens_details":{"cached_tokens":2}},"timings":{"predicted_per_second":50.5}}

        data: [DONE]

        data: not json

        """

    private func decode(_ pieces: [[UInt8]]) throws -> ([GenerationEvent], ChatStreamDecoder) {
        var parser = ServerSentEventParser()
        var decoder = ChatStreamDecoder(backend: "b")
        var events: [GenerationEvent] = []
        for piece in pieces {
            var data: [[UInt8]] = []
            try parser.feed(piece, into: &data)
            for event in data { events += try decoder.decode(event) }
        }
        return (events, decoder)
    }

    @Test("B34, B36, B37, B40, B41: every split of the bytes gives the same events")
    func splits() throws {
        let bytes = Array(Self.stream.utf8)
        let (whole, decoder) = try decode([bytes])
        #expect(
            whole == [
                .progress(Progress(phase: .prompt, fraction: 0.5)), .reasoning("hm"), .text("Grüße 🚋"), .text("!"),
            ])
        #expect(decoder.isDone && decoder.finishReason == .length && decoder.tokensPerSecond == 50.5)
        #expect(decoder.usage == Usage(promptTokens: 8, completionTokens: 3, cachedTokens: 2))
        #expect(decoder.promptTokens == 8)
        for place in 0...bytes.count {
            let (events, _) = try decode([Array(bytes[..<place]), Array(bytes[place...])])
            #expect(events == whole)
        }
        #expect(try decode(bytes.map { [$0] }).0 == whole)
    }

    @Test("B34: line ends of all three kinds, a byte order mark and a missing last empty line are understood")
    func lineEnds() throws {
        for end in ["\n", "\r\n", "\r"] {
            var parser = ServerSentEventParser()
            let text = "\u{FEFF}data: a\(end)data:b\(end)\(end)data\(end)\(end)dataset: x\(end)\(end)data:  c"
            var events: [[UInt8]] = []
            for byte in text.utf8 { try parser.feed([byte], into: &events) }
            #expect(events.map { String(decoding: $0, as: UTF8.self) } == ["a\nb", ""])
            try parser.finish(into: &events)
            #expect(events.last.map { String(decoding: $0, as: UTF8.self) } == " c")
        }
    }

    @Test("B42: an event without end is a fault, not a hunger for memory")
    func endless() {
        var parser = ServerSentEventParser(limit: 1000)
        var events: [[UInt8]] = []
        #expect(throws: ServerSentEventParser.Fault.tooLong) {
            for _ in 0..<20 { try parser.feed(Array(repeating: 0x61, count: 100), into: &events) }
        }
    }

    @Test("B33: an error in a stream that began well is the attempt's failure")
    func errorInStream() {
        var decoder = ChatStreamDecoder(backend: "b")
        #expect(throws: JobFailure.self) {
            try decoder.decode(
                Array(#"{"error":{"code":500,"message":"Context size has been exceeded.","type":"server_error"}}"#.utf8)
            )
        }
        #expect(throws: JobFailure.self) { try decoder.decode(Array("{\"cho".utf8)) }
    }

    @Test(
        "B32, B44: errors are classed by status and type",
        arguments: [
            (400, #"{"error":{"message":"bad"}}"#, JobFailure.Code.invalidInput, false),
            (401, #"{"error":{"message":"Invalid API Key"}}"#, .unauthorized, false), (407, "", .unauthorized, false),
            (204, "", .badReply, true), (206, "data: x", .badReply, true), (302, "", .badReply, false),
            (308, "<html>", .badReply, false),
            (404, "<html>", .invalidInput, false), (408, "", .backendError, true),
            (429, #"{"error":{"message":"slow down"}}"#, .rateLimited, true),
            (429, #"{"error":{"message":"pay","code":"insufficient_quota"}}"#, .credits, false),
            (500, "oops", .backendError, true), (503, #"{"error":{"message":"Loading model"}}"#, .unavailable, true),
            (
                400,
                #"{"error":{"code":400,"message":"m","type":"exceed_context_size_error","n_prompt_tokens":1231,"n_ctx":512}}"#,
                .contextExceeded, false
            ),
        ] as [(Int, String, JobFailure.Code, Bool)])
    func errors(_ status: Int, _ body: String, _ code: JobFailure.Code, _ isRetryable: Bool) {
        let failure = ChatError.failure(status: status, body: Array(body.utf8), backend: "b")
        #expect(failure.code == code && failure.isRetryable == isRetryable)
        if code == .contextExceeded { #expect(failure.message.contains("1231") && failure.message.contains("512")) }
    }

    @Test("the request carries every option in the server's own words")
    func request() throws {
        var options = GenerationOptions()
        options.temperature = 0.5
        options.topP = 0.9
        options.minP = 0.1
        options.repeatPenalty = 1.1
        options.maxTokens = 7
        options.seed = 3
        options.stop = ["x"]
        options.thinking = false
        let request = GenerationRequest(
            kind: .reply, messages: [ConversationMessage(role: .user, content: "h\"i")], options: options,
            schema: .object(["type": .string("object")]))
        let value = try JSONParser.parse(ChatRequest.body(request, model: nil))
        #expect(value["temperature"]?.number == 0.5 && value["top_p"]?.number == 0.9 && value["min_p"]?.number == 0.1)
        #expect(value["repeat_penalty"]?.number == 1.1 && value["max_tokens"]?.integer == 7)
        #expect(value["seed"]?.integer == 3 && value["stop"]?.array == [.string("x")])
        #expect(value["chat_template_kwargs"]?["enable_thinking"]?.bool == false)
        #expect(value["stream"]?.bool == true && value["stream_options"]?["include_usage"]?.bool == true)
        #expect(value["response_format"]?["json_schema"]?["schema"]?["type"]?.string == "object")
        #expect(value["messages"]?.array?.first?["content"]?.string == "h\"i")
    }
}
