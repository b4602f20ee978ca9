import GenTestSupport
import Testing

@testable import GenShared

/// Whatever the bytes are, a decoder ends with a clean value or with its own error.
///
/// A failing seed runs alone with `GEN_TEST_SEED=<seed>`.
@Suite("Decoders: random input", .timeLimit(.minutes(1)))
struct DecoderPropertyTests {
    private static func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }

    @Test(
        "a message: noise and damage are a job or a rejection, and a job is written as it was read",
        arguments: RandomInput.seeds(8))
    func message(seed: UInt64) throws {
        var random = RandomInput(seed: seed)
        let valid = [MessageBody.full, MessageBody.least].map { Array($0.utf8) }
        for round in 0..<500 {
            let body = round % 5 == 0 ? random.noise(upTo: 200) : random.damaged(random.pick(valid))
            let job: Job
            do throws(JobRejection) { job = try Job(body: body) } catch {
                // A watcher is told: it must be a line.
                #expect(error.description.utf8.count < 1000 && !error.description.contains("\n"))
                continue
            }
            #expect(try Job(body: job.body) == job || job.createdAt == nil)
            #expect(try Job(body: job.body).body == job.body)
        }
    }

    private static let usage = Usage(promptTokens: 10, completionTokens: 20, cachedTokens: 5, isEstimated: true)
    private static let stats = Stats(
        queueMilliseconds: 1, firstTokenMilliseconds: 2, totalMilliseconds: 3, tokensPerSecond: 4.5)
    private static let failure = JobFailure(.timeout, "slow \"é\"", backend: "b", isRetryable: true)
    private static let contents: [JobEvent.Content] = [
        .queued, .started(attempt: 2, worker: "w", backend: "b", model: "m", restarted: true), .chunk("té\n😀\u{1B}"),
        .reasoning("r"), .progress(Progress(phase: .prompt, fraction: 0.25)),
        .retrying(reason: "failure", error: failure, delaySeconds: 2.5),
        .completed(Completion(result: "r", finishReason: .other("x"), usage: usage, stats: stats)),
        .failed(failure, partial: usage), .cancelled(by: "me", latencyMilliseconds: 3, partial: usage), .expired,
    ]

    @Test(
        "an event: noise and damage are an event or none, and an event is written as it was read",
        arguments: RandomInput.seeds(8))
    func event(seed: UInt64) throws {
        var random = RandomInput(seed: seed)
        let valid = Self.contents.map {
            Array(JobEvent(id: EventID(attempt: 1, sequence: 5), previous: .queued, content: $0).json.utf8)
        }
        for round in 0..<800 {
            let bytes = round % 5 == 0 ? random.noise(upTo: 120) : random.damaged(random.pick(valid))
            guard let event = JobEvent(json: Self.text(bytes)) else { continue }
            let again = JobEvent(id: event.id, previous: event.previous, content: event.content)
            #expect(JobEvent(json: again.json)?.content == event.content, "\(event.json)")
        }
    }

    @Test("a record: any values in any fields are a record or none", arguments: RandomInput.seeds(4))
    func record(seed: UInt64) throws {
        var random = RandomInput(seed: seed)
        let id = try #require(JobID("a"))
        let values =
            JobState.allCases.map(\.rawValue) + [
                "", "-1", "9223372036854775807", "18446744073709551616", "1e400", "1-1", "0-0", "3-0",
                "9223372036854775806-9223372036854775806",
                "{}", "[]", "null", Self.usage.json, Self.failure.json, Self.stats.json, "{\"prompt_tokens\":-5}",
                "é\u{1B}",
            ]
        for _ in 0..<1000 {
            var fields: [String: String] = [:]
            for name in JobRecord.fieldNames where random.number(upTo: 3) > 0 {
                fields[name] = random.number(upTo: 3) == 0 ? Self.text(random.noise(upTo: 20)) : random.pick(values)
            }
            if random.number(upTo: 9) > 0 { fields["state"] = random.pick(JobState.allCases).rawValue }
            let record = JobRecord(id: id, fields: fields)
            #expect((record == nil) == (fields["state"].flatMap(JobState.init(rawValue:)) == nil))
            guard let event = record?.endingEvent else { continue }
            #expect(event.isTerminal && record?.state.isTerminal == true && event.previous <= event.id)
            #expect(JobEvent(json: event.json)?.isTerminal == true)
        }
    }

    @Test(
        "ids, times and durations: any text is one or none, and one is written as it was read",
        arguments: RandomInput.seeds(4))
    func smallTexts(seed: UInt64) {
        var random = RandomInput(seed: seed)
        let valid = [
            "01m8qmw9gbt4e9121gv2j56wt3", "12-345", "2026-11-30T12:00:00.000Z", "2026-02-28t23:59:60.5+01:00", "1.5h",
            "250ms",
        ].map { Array($0.utf8) }
        for round in 0..<3000 {
            let text = Self.text(round % 4 == 0 ? random.noise(upTo: 40) : random.damaged(random.pick(valid)))
            if let id = JobID(text) { #expect(id.rawValue.utf8.elementsEqual(text.utf8)) }
            if let id = EventID(text) { #expect(EventID(id.description) == id && id < id.next) }
            if let time = Timestamp(text) { #expect(Timestamp(time.description) == time) }
            if let duration = DurationText.parse(text) {
                #expect((.zero...Duration.seconds(30 * 86_400)).contains(duration))
            }
        }
    }

    @Test(
        "bytes that are carried come back as they were, and text that is whole is left alone",
        arguments: RandomInput.seeds(4))
    func carriedBytes(seed: UInt64) {
        var random = RandomInput(seed: seed)
        let valid = Array("aé€😀\u{10FF00}\u{10FFFF}\u{10FEFF}z".utf8)
        for round in 0..<1500 {
            let bytes = round % 3 == 0 ? random.noise(upTo: 30) : random.damaged(valid)
            #expect(CarriedBytes.bytes(of: CarriedBytes.text(bytes)) == bytes)
            #expect(CarriedBytes.repaired(CarriedBytes.text(bytes)) == Self.text(bytes))
        }
    }
}
