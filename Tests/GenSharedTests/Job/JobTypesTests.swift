import GenTestSupport
import Testing

@testable import GenShared

@Suite("Ids, times and events")
struct JobTypesTests {
    @Test("a new id has 26 characters of lower-case Crockford base 32 and sorts by time")
    func newIDs() {
        var generator = SeededGenerator(seed: 1)
        var before = ""
        for milliseconds in stride(from: Int64(0), to: 2_000_000_000_000, by: 40_000_000_000) {
            let id = JobID(atMilliseconds: milliseconds, using: &generator).rawValue
            #expect(id.count == 26 && id.allSatisfy { "0123456789abcdefghjkmnpqrstvwxyz".contains($0) })
            #expect(id > before)
            before = id
        }
    }

    @Test("foreign ids are taken by the rule alone", arguments: ["a", "A-b_9", String(repeating: "x", count: 64)])
    func goodIDs(_ text: String) { #expect(JobID(text)?.rawValue == text) }

    @Test(
        "anything else is refused",
        arguments: ["", "a b", "a{b}", "../x", "a*", "ä", "a\n", "a\0", "🚋", String(repeating: "x", count: 65)])
    func badIDs(_ text: String) { #expect(JobID(text) == nil) }

    @Test(
        "times are read and written as RFC 3339",
        arguments: [
            ("1970-01-01T00:00:00Z", 0), ("2026-11-30T12:00:00.000Z", 1_796_040_000_000),
            ("2024-02-29T23:59:59.999Z", 1_709_251_199_999), ("2026-11-30T13:00:00.5+01:00", 1_796_040_000_500),
            ("9999-12-31T23:59:59.999Z", 253_402_300_799_999),
        ] as [(String, Int64)])
    func times(_ text: String, _ milliseconds: Int64) throws {
        let time = try #require(Timestamp(text))
        #expect(time.milliseconds == milliseconds)
        #expect(Timestamp(time.description) == time)
    }

    @Test(
        "what is no time is refused",
        arguments: [
            "", "now", "2026-11-30", "2026-11-30 12:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z",
            "2026-11-30T24:00:00Z", "2026-11-30T12:60:00Z", "2026-11-30T12:00:00", "2026-11-30T12:00:00.Z",
            "1969-12-31T23:59:59Z", "2026-11-30T12:00:00+1:00", "2026-11-30T12:00:00Zx", "２０２６-11-30T12:00:00Z",
        ])
    func noTimes(_ text: String) { #expect(Timestamp(text) == nil) }

    @Test("every day of 400 years comes back from its text")
    func calendar() {
        for day in stride(from: Int64(0), through: 146_097, by: 1) {
            let time = Timestamp(milliseconds: day * 86_400_000)
            #expect(Timestamp(time.description) == time)
        }
    }

    @Test("event ids compare as two numbers, and only two numbers are ids")
    func eventIDs() {
        #expect(EventID(attempt: 1, sequence: 10) > EventID(attempt: 1, sequence: 9))
        #expect(EventID(attempt: 2, sequence: 1) > EventID(attempt: 1, sequence: 999))
        #expect(EventID("10-2") == EventID(attempt: 10, sequence: 2))
        for text in ["", "1", "-1", "1-", "1-2-3", "a-1", "+1-2", "1--2", " 1-2", "99999999999999999999-1", "1-２"] {
            #expect(EventID(text) == nil)
        }
    }

    @Test("each event comes back from its JSON as it was")
    func events() throws {
        let usage = Usage(promptTokens: 3, completionTokens: 5, cachedTokens: 1, isEstimated: true)
        let failure = JobFailure(.timeout, "too \"slow\"", backend: "b", isRetryable: true)
        let stats = Stats(queueMilliseconds: 1, firstTokenMilliseconds: 2, totalMilliseconds: 3, tokensPerSecond: 4.5)
        let contents: [JobEvent.Content] = [
            .queued, .started(attempt: 2, worker: "w", backend: "b", model: "m", restarted: true),
            .started(attempt: 1, worker: "w", backend: nil, model: nil, restarted: false), .chunk("é\n\u{1}"),
            .reasoning("hm"), .progress(Progress(phase: .queuedAtBackend, fraction: 0.5)),
            .retrying(reason: "failure", error: failure, delaySeconds: 2.5),
            .completed(Completion(result: "r", finishReason: .length, usage: usage, stats: stats)),
            .failed(failure, partial: usage), .cancelled(by: "me", latencyMilliseconds: 7, partial: usage),
            .cancelled(by: nil, latencyMilliseconds: nil, partial: nil), .expired,
        ]
        for content in contents {
            let event = JobEvent(id: EventID(attempt: 1, sequence: 2), previous: .queued, content: content)
            #expect(JobEvent(json: event.json) == event)
            #expect(!event.json.contains("\n"))
        }
    }

    @Test("an unknown type is kept, garbage is no event")
    func strangeEvents() {
        let unknown = JobEvent(json: #"{"id":"1-2","prev":"1-1","type":"sparkle","x":1}"#)
        #expect(unknown?.content == .unknown(type: "sparkle") && unknown?.isTerminal == false)
        for text in [
            "", "{}", "[]", "x", #"{"id":"1-2"}"#, #"{"id":"1-2","prev":"1-1","type":"chunk"}"#,
            #"{"id":"x","prev":"1-1","type":"queued"}"#, #"{"id":"1-2","prev":"1-1","type":"completed"}"#,
        ] {
            #expect(JobEvent(json: text) == nil)
        }
    }

    @Test("four states are ends, three are not")
    func terminalStates() {
        #expect(JobState.allCases.filter(\.isTerminal) == [.completed, .failed, .cancelled, .expired])
    }
}
