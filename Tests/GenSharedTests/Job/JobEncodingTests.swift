import Testing

@testable import GenShared

@Suite("Job: encoding", .timeLimit(.minutes(1)))
struct JobEncodingTests {
    private static let id = JobID(atMilliseconds: 1_796_040_000_000)

    @Test("a job is written in the contract's form")
    func writesTheContract() throws {
        let job = Job(
            id: try #require(JobID("01j")), kind: .slogan, input: JobInput(text: "coffee \"shop\""),
            createdAt: Timestamp(milliseconds: 1_796_040_000_000))
        let expected = #"""
            {"v":1,"id":"01j","kind":"slogan","input":{"text":"coffee \"shop\""},"options":{},"lane":"interactive",\#
            "pool":"text","created_at":"2026-11-30T12:00:00.000Z","timeout_s":600,"tenant":"default","metadata":{}}
            """#
        #expect(String(decoding: job.body, as: UTF8.self) == expected)
    }

    @Test("what is written is read back unchanged", arguments: [MessageBody.least, MessageBody.full])
    func roundTripsText(text: String) throws {
        let job = try Job(body: Array(text.utf8))
        #expect(try Job(body: job.body) == job)
        #expect(try Job(body: job.body).body == job.body)
    }

    @Test("a picture's parameters are read back unchanged")
    func roundTripsImages() throws {
        var image = ImageParameters()
        (image.width, image.height, image.inferenceSteps, image.seed, image.count) = (64, 4096, 1, 0, 10)
        image.guidanceScale = 0.1
        let job = Job(id: Self.id, kind: .image, input: JobInput(text: "a cat", image: image), lane: .batch)
        #expect(try Job(body: job.body) == job)
    }

    @Test("each option alone is read back unchanged", arguments: 0..<9)
    func roundTripsOptions(index: Int) throws {
        var options = GenerationOptions()
        switch index {
        case 0: options.temperature = 0
        case 1: options.topP = 0.1
        case 2: options.minP = 1
        case 3: options.repeatPenalty = 1.0000000000000002
        case 4: options.maxTokens = 8192
        case 5: options.seed = 4_294_967_295
        case 6: options.stop = ["\n\n", "\"", "\u{1}"]
        case 7: options.model = "a/b:c"
        default: options.thinking = true
        }
        let job = Job(id: Self.id, kind: .rewrite, input: JobInput(text: "x"), options: options)
        #expect(try Job(body: job.body).options == options)
    }

    @Test("times are read back to the millisecond")
    func roundTripsTimes() throws {
        let job = Job(
            id: Self.id, kind: .reply, input: JobInput(text: "x"), createdAt: Timestamp(milliseconds: 0),
            expiresAt: Timestamp(milliseconds: .max), timeoutSeconds: 1)
        #expect(try Job(body: job.body) == job)
    }

    @Test("any text, style and metadata are read back unchanged", arguments: 1...4)
    func roundTripsAnything(seed: UInt64) throws {
        var random = RandomJSON(seed: 700 + seed)
        for _ in 0..<50 {
            let text = "x" + random.value(depth: 2).serialized
            let job = Job(
                id: Self.id, kind: .reply,
                input: JobInput(
                    text: text, style: String(text.prefix(20)),
                    messages: [ConversationMessage(role: .user, content: text)],
                    schema: .object(["s": random.value()])),
                metadata: ["m": random.value(), text: random.value()])
            #expect(try Job(body: job.body) == job)
        }
    }

    @Test("a body stands on one line and within the strict parser's rules")
    func writesStrictJSON() throws {
        let job = try Job(body: Array(MessageBody.full.utf8))
        #expect(job.body.allSatisfy { $0 >= 0x20 })
        #expect(try JSONParser.parse(job.body).object != nil)
    }
}
