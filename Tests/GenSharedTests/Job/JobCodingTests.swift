import Testing

@testable import GenShared

@Suite("Job message")
struct JobCodingTests {
    private static let smallest = #"{"v":1,"id":"a","kind":"reply","input":{"text":"x"}}"#

    private func decode(_ text: String) throws(JobRejection) -> Job { try Job(body: Array(text.utf8)) }

    @Test("the four required members are enough, and the rest has the contract's defaults")
    func defaults() throws {
        let job = try decode(Self.smallest)
        #expect(job.lane == .interactive && job.pool == "text" && job.timeoutSeconds == 600 && job.tenant == "default")
        #expect(job.options == GenerationOptions() && job.expiresAt == nil && job.metadata == JSONObject())
        #expect(try decode(#"{"v":1,"id":"a","kind":"image","input":{"text":"x"}}"#).pool == "image")
    }

    @Test("a job comes back from its message as it was")
    func roundTrip() throws {
        var job = Job(id: try #require(JobID("01abc")), kind: .rewrite, input: JobInput(text: "draft \"é\" 🚋"))
        job.input.style = "haiku"
        job.input.messages = [ConversationMessage(role: .user, content: "hi"), .init(role: .assistant, content: "ho")]
        job.input.schema = .object(["type": .string("object")])
        job.options.temperature = 0.25
        job.options.topP = 1
        job.options.minP = 0
        job.options.repeatPenalty = 1.5
        job.options.maxTokens = 8192
        job.options.seed = 4_294_967_295
        job.options.stop = ["END", "\n"]
        job.options.model = "m"
        job.options.thinking = false
        job.lane = .batch
        job.pool = "large"
        job.createdAt = Timestamp("2026-11-30T12:00:00.000Z")
        job.expiresAt = Timestamp("2026-11-30T12:00:30.250Z")
        job.timeoutSeconds = 1
        job.tenant = "t"
        job.metadata = ["k": .integer(1)]
        #expect(try Job(body: job.body) == job)
        var image = Job(id: job.id, kind: .image, input: JobInput(text: "a fox"))
        image.input.image = ImageParameters()
        #expect(try Job(body: image.body) == image)
    }

    @Test("the queue's route wins over the body, and unknown members are ignored")
    func routeAndUnknown() throws {
        let body = Array(
            #"{"v":1,"id":"a","kind":"reply","input":{"text":"x"},"lane":"batch","pool":"p","new":[1]}"#.utf8)
        #expect(try Job(body: body).lane == .batch)
        let routed = try Job(body: body, route: ("other", .interactive))
        #expect(routed.pool == "other" && routed.lane == .interactive)
    }

    @Test(
        "each wrong member is refused with its code and its name",
        arguments: [
            ("", JobRejection.Code.malformed, ""), ("[]", .malformed, ""), ("null", .malformed, ""),
            (#"{"id":"a"}"#, .unsupportedVersion, "v"), (#"{"v":2}"#, .unsupportedVersion, "v"),
            (#"{"v":"1"}"#, .malformed, "v"), (#"{"v":1}"#, .badID, "id"), (#"{"v":1,"id":""}"#, .badID, "id"),
            (#"{"v":1,"id":"a/b"}"#, .badID, "id"), (#"{"v":1,"id":"é"}"#, .badID, "id"),
            (#"{"v":1,"id":"a\n"}"#, .badID, "id"), (#"{"v":1,"id":5}"#, .malformed, "id"),
            (#"{"v":1,"id":"a"}"#, .malformed, "kind"), (#"{"v":1,"id":"a","kind":"poem"}"#, .invalidInput, "kind"),
            (#"{"v":1,"id":"a","kind":"reply"}"#, .malformed, "input"),
            (#"{"v":1,"id":"a","kind":"reply","input":"x"}"#, .malformed, "input"),
            (#"{"v":1,"id":"a","kind":"reply","input":{}}"#, .malformed, "input.text"),
            (#"{"v":1,"id":"a","kind":"reply","input":{"text":" \n"}}"#, .invalidInput, "input.text"),
        ])
    func refused(_ body: String, _ code: JobRejection.Code, _ field: String) {
        do throws(JobRejection) {
            _ = try decode(body)
            Issue.record("accepted: \(body)")
        } catch {
            #expect(error.code == code && error.field == field)
        }
    }

    @Test(
        "options, times and sizes are held to their bounds",
        arguments: [
            #""options":{"max_tokens":0}"#, #""options":{"max_tokens":8193}"#, #""options":{"max_tokens":1.5}"#,
            #""options":{"max_tokens":"5"}"#, #""options":{"temperature":-0.1}"#, #""options":{"temperature":2.1}"#,
            #""options":{"top_p":1.01}"#, #""options":{"min_p":-1}"#, #""options":{"repeat_penalty":0}"#,
            #""options":{"seed":-1}"#, #""options":{"seed":4294967296}"#, #""options":{"seed":1e300}"#,
            #""options":{"stop":["a",1]}"#, #""options":{"stop":[""]}"#, #""options":{"stop":5}"#,
            #""options":{"thinking":"yes"}"#, #""options":[]"#, #""timeout_s":0"#, #""timeout_s":1201"#,
            #""timeout_s":-9223372036854775808"#, #""created_at":"yesterday""#, #""expires_at":5"#, #""lane":"fast""#,
            #""pool":"a.b""#, #""pool":"""#, #""tenant":"""#, #""metadata":[]"#,
        ])
    func bounds(_ member: String) {
        #expect(throws: JobRejection.self) {
            _ = try decode(#"{"v":1,"id":"a","kind":"reply","input":{"text":"x"},\#(member)}"#)
        }
    }

    @Test("text and earlier turns together are bounded, and so is the body")
    func sizes() throws {
        let text = String(repeating: "x", count: 65_536)
        _ = try decode(#"{"v":1,"id":"a","kind":"reply","input":{"text":"\#(text)"}}"#)
        #expect(throws: JobRejection.self) {
            try decode(#"{"v":1,"id":"a","kind":"reply","input":{"text":"\#(text)x"}}"#)
        }
        #expect(throws: JobRejection.self) {
            try decode(
                #"{"v":1,"id":"a","kind":"reply","input":{"text":"\#(text)","messages":[{"role":"user","content":"y"}]}}"#
            )
        }
        #expect(throws: JobRejection.self) { try Job(body: [UInt8](repeating: 0x20, count: 1 << 20 + 1)) }
    }
}
