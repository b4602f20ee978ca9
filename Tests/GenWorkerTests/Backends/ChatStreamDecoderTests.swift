import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

@Suite("Chat stream decoder")
struct ChatStreamDecoderTests {
    private func decode(_ lines: String...) throws -> (events: [GenerationEvent], decoder: ChatStreamDecoder) {
        var decoder = ChatStreamDecoder(backend: "b")
        var events: [GenerationEvent] = []
        for line in lines { events += try decoder.decode(Array(line.utf8)) }
        return (events, decoder)
    }

    private func failure(_ line: String) -> JobFailure? {
        var decoder = ChatStreamDecoder(backend: "b")
        do throws(JobFailure) {
            _ = try decoder.decode(Array(line.utf8))
            return nil
        } catch { return error }
    }

    @Test(
        "B37: what carries no text is no event and no fault",
        arguments: [
            "{}", #"{"choices":[]}"#, #"{"choices":[{"delta":null}]}"#, #"{"choices":[{"delta":{"content":null}}]}"#,
            #"{"choices":[{"delta":{"content":""}}]}"#, #"{"choices":[{"delta":{"role":"assistant"}}]}"#,
            #"{"choices":[{"index":1,"delta":{"content":"other"}}]}"#, #"{"choices":null,"error":null}"#,
            #"{"choices":[{}]}"#, #"{"unknown":[1,2]}"#, #"{"prompt_progress":{"total":0,"processed":0}}"#,
        ])
    func noText(_ line: String) throws {
        let (events, decoder) = try decode(line)
        #expect(events == [] && decoder.pieces == 0 && !decoder.isDone && decoder.finishReason == nil)
    }

    @Test("reasoning comes under either name, before the text of the same piece")
    func reasoning() throws {
        let (events, decoder) = try decode(
            #"{"choices":[{"delta":{"reasoning_content":"a"}}]}"#, #"{"choices":[{"delta":{"reasoning":"b"}}]}"#,
            #"{"choices":[{"delta":{"content":"c","reasoning_content":"d"}}]}"#)
        #expect(events == [.reasoning("a"), .reasoning("b"), .reasoning("d"), .text("c")])
        #expect(decoder.pieces == 4)
    }

    @Test(
        "B38: finish reasons are told as they are, also those that we do not know",
        arguments: [
            ("stop", FinishReason.stop), ("length", .length), ("content_filter", .contentFilter),
            ("tool_calls", .toolCalls), ("eos_token", .other("eos_token")),
            (String(repeating: "x", count: 100), .other(String(repeating: "x", count: 64))),
        ])
    func finishReason(_ text: String, _ reason: FinishReason) throws {
        let (_, decoder) = try decode(#"{"choices":[{"delta":{},"finish_reason":"\#(text)"}]}"#)
        #expect(decoder.finishReason == reason && !decoder.isDone)
    }

    @Test("B40: after the end mark nothing counts, not even an error, and it is reported")
    func afterDone() throws {
        let (events, decoder) = try decode(
            "[DONE]", #"{"choices":[{"delta":{"content":"late"}}]}"#, "garbage", #"{"error":{"message":"late"}}"#)
        #expect(events == [] && decoder.isDone && decoder.oddities == [.dataAfterEnd])
    }

    @Test("B41: only the first choice of index 0 counts, others are reported")
    func otherChoices() throws {
        let (events, decoder) = try decode(
            #"{"choices":[{"index":2,"delta":{"content":"c"}},{"index":0,"delta":{"content":"a"}}]}"#,
            #"{"choices":[{"index":0,"delta":{"content":"b"}},{"index":0,"delta":{"content":"x"}}]}"#,
            #"{"choices":[{"index":-1,"delta":{"content":"y"}}]}"#, #"{"choices":[{"delta":{"content":"d"}}]}"#)
        #expect(events == [.text("a"), .text("b"), .text("d")] && decoder.oddities == [.otherChoices])
    }

    @Test(
        "B35: what should carry text and has another form fails the attempt",
        arguments: [
            "7", "null", "[]", "\"text\"", #"{"choices":"x"}"#, #"{"choices":[7]}"#, #"{"choices":[{"index":"0"}]}"#,
            #"{"choices":[{"index":0.5}]}"#, #"{"choices":[{"delta":"x"}]}"#, #"{"choices":[{"delta":{"content":5}}]}"#,
            #"{"choices":[{"delta":{"content":[{"type":"text","text":"x"}]}}]}"#,
            #"{"choices":[{"delta":{"reasoning":{}}}]}"#, #"{"choices":[{"delta":{},"finish_reason":1}]}"#,
        ])
    func wrongForms(_ line: String) {
        let failure = failure(line)
        #expect(failure?.code == .badReply && failure?.isRetryable == true)
        #expect(failure?.message.hasPrefix("b sent ") == true)
    }

    @Test("usage may come alone, and without the parts that not every server tells")
    func usage() throws {
        #expect(
            try decode(#"{"choices":[],"usage":{"prompt_tokens":5}}"#).decoder.usage
                == Usage(promptTokens: 5, completionTokens: 0))
        #expect(try decode(#"{"usage":null}"#).decoder.usage == nil)
        #expect(try decode(#"{"usage":{"prompt_tokens":"5"}}"#).decoder.usage == nil)
        #expect(try decode(#"{"timings":{"predicted_per_second":0}}"#).decoder.tokensPerSecond == nil)
    }

    @Test("progress of the prompt stays between 0 and 1")
    func progress() throws {
        for (processed, fraction) in [(-5, 0.0), (5, 0.5), (50, 1.0)] {
            let (events, decoder) = try decode(#"{"prompt_progress":{"total":10,"processed":\#(processed)}}"#)
            #expect(events == [.progress(Progress(phase: .prompt, fraction: fraction))] && decoder.promptTokens == 10)
        }
    }

    @Test(
        "B35: what is cut, doubled or no JSON fails the attempt, which may be tried again",
        arguments: [#"{"choices":[{"delta""#, "{}{}", "garbage", "", "\u{0}", #"{"a":1}}"#])
    func garbage(_ line: String) {
        let failure = failure(line)
        #expect(failure?.code == .badReply && failure?.isRetryable == true && failure?.backend == "b")
    }

    /// The text and the reasoning of pieces of JSON, with the end.
    private func joined(_ pieces: [String], key: String = "content") throws -> (
        text: String, decoder: ChatStreamDecoder
    ) {
        try joined(pieces.map { Array($0.utf8) }, key: key)
    }

    private func joined(_ pieces: [[UInt8]], key: String = "content") throws -> (
        text: String, decoder: ChatStreamDecoder
    ) {
        var decoder = ChatStreamDecoder(backend: "b")
        var events: [GenerationEvent] = []
        for piece in pieces {
            events += try decoder.decode(
                Array(#"{"choices":[{"delta":{"\#(key)":""#.utf8) + piece + Array(#""}}]}"#.utf8))
        }
        events += try decoder.decode(Array("[DONE]".utf8))
        let text = events.map { event in
            switch event {
            case .text(let text), .reasoning(let text): text
            default: "?"
            }
        }
        return (text.joined(), decoder)
    }

    @Test(
        "B36: the halves of a surrogate pair are joined across pieces, a lone one is U+FFFD",
        arguments: [
            ([#"a\ud83d"#, #"\ude00b"#], "a😀b"), ([#"\ud83d"#, "", #"\ude00"#], "😀"), ([#"a\ud83d"#], "a\u{FFFD}"),
            ([#"\ud83d"#, "x"], "\u{FFFD}x"), ([#"\ude00"#, #"\ud83d"#], "\u{FFFD}\u{FFFD}"),
            ([#"\ud83d"#, #"\ud83d\ude00"#], "\u{FFFD}😀"), ([#"\ud83d\ude00"#], "😀"),
            (["\u{10FFFD}", "\u{10FF41}"], "\u{10FFFD}\u{10FF41}"), ([#"\udbff"#, #"\udfff"#], "\u{10FFFF}"),
        ])
    func surrogates(_ pieces: [String], _ wanted: String) throws {
        for key in ["content", "reasoning"] {
            let (text, decoder) = try joined(pieces, key: key)
            #expect(text == wanted)
            #expect(decoder.oddities.contains(.brokenText) == wanted.contains("\u{FFFD}"))
        }
    }

    @Test("B36: a character whose bytes are cut between pieces is joined, wherever it is cut")
    func cutCharacters() throws {
        let bytes = Array("aé€😀\u{10FF80}z".utf8)
        for pieces in Splits.all(of: bytes) {
            let (text, decoder) = try joined(pieces)
            #expect(Array(text.utf8) == bytes && decoder.oddities.isEmpty)
        }
        #expect(try joined([[0x61, 0xF0, 0x9F], [0x62]]).text.hasSuffix("b"))
        #expect(try joined([[0x61, 0xF0, 0x9F]]).text == "a\u{FFFD}")
        #expect(try joined([[0xFF], [0xC3]]).text == "\u{FFFD}\u{FFFD}")
    }

    @Test("B38: a finish reason with broken text does not break the stream")
    func brokenFinishReason() throws {
        let (_, decoder) = try decode(#"{"choices":[{"finish_reason":"x\ud83d"}]}"#)
        #expect(decoder.finishReason == .other("x\u{FFFD}\u{FFFD}\u{FFFD}"))
    }

    @Test("B33: an error with status 200 is classed by its own code, whatever its form")
    func errorsInStream() throws {
        #expect(failure(#"{"error":{"code":429,"message":"slow"}}"#)?.code == .rateLimited)
        #expect(failure(#"{"error":{"code":400,"message":"bad"}}"#)?.isRetryable == false)
        #expect(failure(#"{"error":{"message":"oops"}}"#)?.code == .backendError)
        for code in ["0", "-1", "200", "302", "1e18", "\"x\"", "null"] {
            let failure = failure(#"{"error":{"code":\#(code),"message":"m"}}"#)
            #expect(failure?.code == .backendError && failure?.isRetryable == true)
        }
        #expect(failure(#"{"error":{"code":"429","message":"slow"}}"#)?.code == .rateLimited)
        #expect(failure(#"{"error":{"message":"a\ud83d"}}"#)?.message == "b: a\u{FFFD}")
        let marks = String(repeating: "e\u{301}\u{302}", count: 10_000)
        #expect(try #require(failure(#"{"error":"\#(marks)"}"#)).message.utf8.count < 1100)
        #expect(failure(#"{"error":"plain words"}"#)?.message == "b: plain words")
        #expect(
            failure(#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#)?.code == .contextExceeded)
        let overflow = failure(
            #"{"error":{"code":400,"message":"m","type":"exceed_context_size_error","n_prompt_tokens":1231,"n_ctx":512}}"#
        )
        #expect(overflow?.code == .contextExceeded && overflow?.isRetryable == false)
        #expect(overflow?.message.contains("1231") == true && overflow?.message.contains("512") == true)
    }

    @Test("B32: a page instead of JSON is told in one short line")
    func page() {
        let body = "<html>\n  <h1>Bad\tgateway</h1>" + String(repeating: "x", count: 10_000)
        let failure = ChatError.failure(status: 502, body: Array(body.utf8), backend: "b")
        #expect(failure.code == .backendError && failure.isRetryable)
        #expect(failure.message.hasPrefix("b: status 502 <html> <h1>Bad gateway</h1>"))
        #expect(failure.message.utf8.count < 600 && !failure.message.contains("\n"))
    }
}
