import GenShared
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
        "what carries no text is no event and no fault",
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
        "finish reasons",
        arguments: [
            ("stop", FinishReason.stop), ("length", .length), ("content_filter", .contentFilter),
            ("tool_calls", .toolCalls), ("eos_token", .stop),
        ])
    func finishReason(_ text: String, _ reason: FinishReason) throws {
        let (_, decoder) = try decode(#"{"choices":[{"delta":{},"finish_reason":"\#(text)"}]}"#)
        #expect(decoder.finishReason == reason && !decoder.isDone)
    }

    @Test("after the end mark nothing counts, not even an error")
    func afterDone() throws {
        let (events, decoder) = try decode(
            "[DONE]", #"{"choices":[{"delta":{"content":"late"}}]}"#, "garbage", #"{"error":{"message":"late"}}"#)
        #expect(events == [] && decoder.isDone)
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
        "what is cut, doubled or no JSON fails the attempt, which may be tried again",
        arguments: [#"{"choices":[{"delta""#, "{}{}", "garbage", "", "\u{0}", #"{"a":1}}"#])
    func garbage(_ line: String) {
        let failure = failure(line)
        #expect(failure?.code == .badReply && failure?.isRetryable == true && failure?.backend == "b")
    }

    @Test("lone surrogates across pieces do not break the stream")
    func surrogates() throws {
        let (events, _) = try decode(#"{"choices":[{"delta":{"content":"a\ud83d"}}]}"#)
        guard case .text(let text)? = events.first else {
            Issue.record("no text in \(events)")
            return
        }
        #expect(text == "a\u{FFFD}")
    }

    @Test("an error with status 200 is classed by its own code, whatever its form")
    func errorsInStream() {
        #expect(failure(#"{"error":{"code":429,"message":"slow"}}"#)?.code == .rateLimited)
        #expect(failure(#"{"error":{"code":400,"message":"bad"}}"#)?.isRetryable == false)
        #expect(failure(#"{"error":{"message":"oops"}}"#)?.code == .backendError)
        #expect(failure(#"{"error":"plain words"}"#)?.message == "b: plain words")
        #expect(
            failure(#"{"error":{"code":"context_length_exceeded","message":"too long"}}"#)?.code == .contextExceeded)
        let overflow = failure(
            #"{"error":{"code":400,"message":"m","type":"exceed_context_size_error","n_prompt_tokens":1231,"n_ctx":512}}"#
        )
        #expect(overflow?.code == .contextExceeded && overflow?.isRetryable == false)
        #expect(overflow?.message.contains("1231") == true && overflow?.message.contains("512") == true)
    }

    @Test("a page instead of JSON is told in one short line")
    func page() {
        let body = "<html>\n  <h1>Bad\tgateway</h1>" + String(repeating: "x", count: 10_000)
        let failure = ChatError.failure(status: 502, body: Array(body.utf8), backend: "b")
        #expect(failure.code == .backendError && failure.isRetryable)
        #expect(failure.message.hasPrefix("b: status 502 <html> <h1>Bad gateway</h1>"))
        #expect(failure.message.utf8.count < 600 && !failure.message.contains("\n"))
    }
}
