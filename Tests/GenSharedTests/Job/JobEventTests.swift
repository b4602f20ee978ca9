import Testing

@testable import GenShared

@Suite("Job event", .timeLimit(.minutes(1)))
struct JobEventTests {
    private static let usage = Usage(promptTokens: 10, completionTokens: 20, cachedTokens: 5, isEstimated: true)
    private static let failure = JobFailure(.contextExceeded, "too \"long\"\n", backend: "gpu-1", isRetryable: true)
    private static let stats = Stats(
        queueMilliseconds: 12, firstTokenMilliseconds: 80, totalMilliseconds: 900, tokensPerSecond: 41.5)
    private static let noStats = Stats(
        queueMilliseconds: 0, firstTokenMilliseconds: nil, totalMilliseconds: 0, tokensPerSecond: nil)

    /// Each type, once with all of its members and once with as few as it can have; with the members' JSON.
    private static let contents: [(JobEvent.Content, String)] = [
        (.queued, #""type":"queued""#), (.expired, #""type":"expired""#),
        (.unknown(type: "artifact"), #""type":"artifact""#),
        (
            .started(attempt: 2, worker: "w1", backend: "gpu-1", model: "qwen", restarted: true),
            #""type":"started","attempt":2,"worker":"w1","backend":"gpu-1","model":"qwen","restarted":true"#
        ),
        (
            .started(attempt: 1, worker: "", backend: nil, model: nil, restarted: false),
            #""type":"started","attempt":1,"worker":"""#
        ),
        (.chunk(" up\n😀"), #""type":"chunk","text":" up\n😀""#), (.chunk(""), #""type":"chunk","text":"""#),
        (.reasoning("\"so\""), #""type":"reasoning","text":"\"so\"""#),
        (
            .progress(Progress(phase: .queuedAtBackend, fraction: 0.25)),
            #""type":"progress","phase":"queued_at_backend","fraction":0.25"#
        ),
        (.progress(Progress(phase: .loading)), #""type":"progress","phase":"loading""#),
        (
            .retrying(reason: "failure", error: failure, delaySeconds: 2.5),
            #""type":"retrying","reason":"failure","error":{"code":"context_exceeded","message":"too \"long\"\n","#
                + #""backend":"gpu-1","retryable":true},"delay_s":2.5"#
        ),
        (
            .retrying(reason: "preempted", error: nil, delaySeconds: 0),
            #""type":"retrying","reason":"preempted","delay_s":0"#
        ),
        (
            .completed(Completion(result: "Wake up", finishReason: .length, usage: usage, stats: stats)),
            #""type":"completed","result":"Wake up","finish_reason":"length","usage":{"prompt_tokens":10,"#
                + #""completion_tokens":20,"cached_tokens":5,"total_tokens":30,"estimated":true},"#
                + #""stats":{"queue_ms":12,"ttft_ms":80,"total_ms":900,"tokens_per_second":41.5}"#
        ),
        (
            .completed(Completion(result: "", finishReason: .stop, usage: nil, stats: noStats)),
            #""type":"completed","result":"","finish_reason":"stop","stats":{"queue_ms":0,"total_ms":0}"#
        ),
        (
            .failed(JobFailure(.timeout, "slow"), partial: usage),
            #""type":"failed","error":{"code":"timeout","message":"slow","retryable":false},"usage":{"prompt_tokens":10,"#
                + #""completion_tokens":20,"cached_tokens":5,"total_tokens":30,"estimated":true}"#
        ),
        (
            .failed(JobFailure(.internal, ""), partial: nil),
            #""type":"failed","error":{"code":"internal","message":"","retryable":false}"#
        ),
        (.cancelled(by: "cli", latencyMilliseconds: 3, partial: nil), #""type":"cancelled","by":"cli","latency_ms":3"#),
        (.cancelled(by: nil, latencyMilliseconds: nil, partial: nil), #""type":"cancelled""#),
    ]

    @Test("every content is written in the contract's form and read back unchanged", arguments: contents)
    func roundTrips(content: JobEvent.Content, fields: String) throws {
        let (id, previous) = (EventID(attempt: 1, sequence: 5), EventID(attempt: 1, sequence: 4))
        let event = JobEvent(id: id, previous: previous, content: content)
        #expect(event.json == "{\"id\":\"1-5\",\"prev\":\"1-4\",\(fields)}")
        #expect(content.fields == fields)
        #expect(JobEvent(json: event.json) == event)
        #expect(content.type == (try JSONParser.parse(event.json)["type"]?.string))
    }

    @Test("the four ends have a state, nothing else has", arguments: contents)
    func knowsItsEnd(content: JobEvent.Content, fields: String) {
        let ends: [String: JobState] = [
            "completed": .completed, "failed": .failed, "cancelled": .cancelled, "expired": .expired,
        ]
        #expect(content.terminalState == ends[content.type])
        #expect(content.terminalState?.isTerminal != false)
        #expect(JobEvent(id: .queued, previous: .origin, content: content).isTerminal == (ends[content.type] != nil))
    }

    @Test("a state is terminal if it is one of the four ends")
    func knowsTerminalStates() {
        #expect(JobState.allCases.filter(\.isTerminal) == [.completed, .failed, .cancelled, .expired])
        #expect(JobState.allCases.filter { !$0.isTerminal } == [.queued, .running, .retrying])
    }

    @Test("any text is carried unchanged on one line", arguments: 1...4)
    func carriesAnyText(seed: UInt64) throws {
        var random = RandomJSON(seed: 800 + seed)
        for _ in 0..<100 {
            let text = random.value(depth: 2).serialized + "\r\n\t\u{1}\u{7F}\"\\\u{2028}e\u{301}"
            for content in [JobEvent.Content.chunk(text), .failed(JobFailure(.internal, text), partial: nil)] {
                let event = JobEvent(id: .queued, previous: .origin, content: content)
                #expect(event.json.utf8.allSatisfy { $0 >= 0x20 })
                #expect(JobEvent(json: event.json) == event)
            }
        }
    }

    @Test("an event is equal to itself for every class of failure and reason to stop")
    func roundTripsCodes() throws {
        let codes = [
            "unavailable", "unauthorized", "rate_limited", "invalid_input", "context_exceeded", "content_policy",
            "credits",
            "backend_error", "bad_backend_reply", "timeout", "output_too_large", "invalid_result", "unsupported",
            "exhausted",
            "poison", "rejected", "internal",
        ]
        for code in codes {
            let failure = JobFailure(try #require(JobFailure.Code(rawValue: code)), "m")
            #expect(JobFailure(json: try JSONParser.parse(failure.json)) == failure)
        }
        for reason in ["stop", "length", "content_filter", "tool_calls", "a word of the backend's \u{1B}"] {
            let finish = FinishReason(rawValue: reason)
            #expect(finish.rawValue == reason)
            let completion = Completion(result: "r", finishReason: finish, usage: nil, stats: Self.noStats)
            let event = JobEvent(id: .queued, previous: .origin, content: .completed(completion))
            #expect(JobEvent(json: event.json)?.content == .completed(completion))
        }
    }

    @Test("the sum of tokens saturates")
    func sumsTokens() {
        #expect(Usage(promptTokens: 1, completionTokens: 2).totalTokens == 3)
        #expect(Usage(promptTokens: .max, completionTokens: 1).totalTokens == .max)
        #expect(Usage(promptTokens: .max, completionTokens: .max).totalTokens == .max)
    }
}
