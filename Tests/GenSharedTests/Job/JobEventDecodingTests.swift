import Testing

@testable import GenShared

@Suite("Job event: decoding", .timeLimit(.minutes(1)))
struct JobEventDecodingTests {
    private func content(_ fields: String) -> JobEvent.Content? {
        JobEvent(json: "{\"id\":\"1-2\",\"prev\":\"1-1\",\(fields)}")?.content
    }

    @Test(
        "B49: garbage is no event",
        arguments: [
            "", " ", "null", "[]", "7", "\"chunk\"", "{}", "{", "hello", #"{"id":"1-2","prev":"1-1"}"#,
            #"{"id":"1-2","type":"queued"}"#, #"{"prev":"1-1","type":"queued"}"#,
            #"{"id":"1","prev":"1-1","type":"queued"}"#,
            #"{"id":"1-2","prev":"-1","type":"queued"}"#, #"{"id":1,"prev":"1-1","type":"queued"}"#,
            #"{"id":"1-2","prev":null,"type":"queued"}"#, #"{"id":"1-2","prev":"1-1","type":7}"#,
            #"{"id":"1-2","prev":"1-1","type":null}"#, #"{"id":"1-2","prev":"1-1","type":"queued"}x"#,
            #"{"id":"1-2","id":"1-2","prev":"1-1","type":"queued"}"#, #"[{"id":"1-2","prev":"1-1","type":"queued"}]"#,
            #"{"id":"1-18446744073709551616","prev":"1-1","type":"queued"}"#,
        ])
    func refusesGarbage(json: String) {
        #expect(JobEvent(json: json) == nil)
    }

    @Test(
        "a member that the type cannot do without must be there with its type",
        arguments: [
            #""type":"chunk""#, #""type":"chunk","text":7"#, #""type":"chunk","text":null"#, #""type":"reasoning""#,
            #""type":"reasoning","text":[]"#, #""type":"completed""#, #""type":"completed","result":null"#,
            #""type":"completed","result":{}"#, #""type":"failed""#, #""type":"failed","error":"broken""#,
            #""type":"failed","error":{}"#, #""type":"failed","error":{"message":7}"#,
        ])
    func refusesIncomplete(fields: String) {
        #expect(content(fields) == nil)
    }

    @Test("an unknown type is kept with its text")
    func keepsUnknownTypes() throws {
        for type in ["artifact", "", "CHUNK", "chunk ", "prögress"] {
            let json = "{\"new\":[1],\"id\":\"1-2\",\"prev\":\"1-1\",\"type\":\"\(type)\",\"text\":7}"
            let event = try #require(JobEvent(json: json))
            #expect(event.content == .unknown(type: type))
            #expect(event.content.type == type)
            #expect(event.json == json)
            #expect(!event.isTerminal)
        }
    }

    @Test("a phase that is not known makes an unknown event, not none")
    func keepsUnknownPhases() {
        #expect(content(#""type":"progress","phase":"upscaling","fraction":1"#) == .unknown(type: "progress"))
        #expect(content(#""type":"progress","step":1,"total":30"#) == .unknown(type: "progress"))
    }

    @Test("unknown members are ignored, and the text stays as it was published")
    func ignoresUnknownMembers() throws {
        let json = #"{"type":"chunk","x":{"y":[]},"text":"a","prev":"1-1","id":"1-2"}"#
        let event = try #require(JobEvent(json: json))
        #expect(event.content == .chunk("a"))
        #expect(event.id == EventID(attempt: 1, sequence: 2))
        #expect(event.previous == EventID(attempt: 1, sequence: 1))
        #expect(event.json == json)
    }

    @Test("what is not said has a default")
    func fillsDefaults() {
        #expect(
            content(#""type":"started""#)
                == .started(attempt: 1, worker: "", backend: nil, model: nil, restarted: false))
        #expect(content(#""type":"retrying""#) == .retrying(reason: "", error: nil, delaySeconds: 0))
        #expect(content(#""type":"cancelled""#) == .cancelled(by: nil, latencyMilliseconds: nil, partial: nil))
        #expect(
            content(#""type":"failed","error":{"message":"m"}"#) == .failed(JobFailure(.internal, "m"), partial: nil))
        let stats = Stats(queueMilliseconds: 0, firstTokenMilliseconds: nil, totalMilliseconds: 0, tokensPerSecond: nil)
        #expect(
            content(#""type":"completed","result":"r""#)
                == .completed(Completion(result: "r", finishReason: .stop, usage: nil, stats: stats)))
    }

    @Test("a class or a reason that is not known does not hide the end")
    func keepsEndsReadable() throws {
        let failed = content(
            #""type":"failed","error":{"code":"new_code","message":"m","backend":"b","retryable":true}"#)
        #expect(failed == .failed(JobFailure(.internal, "m", backend: "b", isRetryable: true), partial: nil))
        let completed = content(#""type":"completed","result":"r","finish_reason":"new","usage":7,"stats":[]"#)
        guard case .completed(let completion)? = completed else {
            Issue.record("no end: \(String(describing: completed))")
            return
        }
        #expect(completion.finishReason == .other("new"))
        #expect(content(#""type":"cancelled","by":7,"latency_ms":"x","usage":{}"#)?.terminalState == .cancelled)
    }

    @Test("B49: numbers beyond all reason never trap")
    func survivesNumbers() {
        for number in ["9223372036854775807", "-9223372036854775808", "18446744073709551616", "-1", "1e308", "0.5"] {
            #expect(content("\"type\":\"started\",\"attempt\":\(number)") != nil)
            #expect(content("\"type\":\"progress\",\"phase\":\"prompt\",\"fraction\":\(number)") != nil)
            #expect(content("\"type\":\"retrying\",\"delay_s\":\(number)") != nil)
            let usage = "{\"prompt_tokens\":\(number),\"completion_tokens\":\(number),\"cached_tokens\":\(number)}"
            let stats =
                "{\"queue_ms\":\(number),\"ttft_ms\":\(number),\"total_ms\":\(number),\"tokens_per_second\":\(number)}"
            let completed = content("\"type\":\"completed\",\"result\":\"\",\"usage\":\(usage),\"stats\":\(stats)")
            #expect(completed.map { !$0.fields.isEmpty } == true)
        }
    }

    @Test("broken text of a backend reaches the watcher as U+FFFD")
    func repairsText() {
        #expect(content(#""type":"chunk","text":"a\ud800b\u0000""#) == .chunk("a\u{FFFD}b\u{FFFD}"))
    }

    @Test("damage and cuts never trap", arguments: 1...4)
    func survivesDamage(seed: UInt64) {
        var random = RandomJSON(seed: 900 + seed)
        let usage = Usage(promptTokens: 1, completionTokens: 2)
        let stats = Stats(queueMilliseconds: 1, firstTokenMilliseconds: 2, totalMilliseconds: 3, tokensPerSecond: 4.5)
        let contents: [JobEvent.Content] = [
            .completed(Completion(result: "é😀", finishReason: .stop, usage: usage, stats: stats)),
            .started(attempt: 2, worker: "w", backend: "b", model: "m", restarted: true),
            .retrying(reason: "failure", error: JobFailure(.timeout, "m"), delaySeconds: 1),
        ]
        for content in contents {
            let bytes = Array(JobEvent(id: .queued, previous: .origin, content: content).json.utf8)
            for end in 0..<bytes.count {
                #expect(JobEvent(json: String(decoding: bytes[..<end], as: UTF8.self)) == nil)
            }
            for _ in 0..<300 {
                let text = String(decoding: random.damaged(bytes), as: UTF8.self)
                if let event = JobEvent(json: text) { #expect(event.json == text) }
            }
        }
    }
}
