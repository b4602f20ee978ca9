import Foundation
import GenTestSupport
import Testing

@testable import GenShared
@testable import GenWorker

/// A failing seed runs alone with `GEN_TEST_SEED=<seed>`.
@Suite("Backends and messages: random input", .timeLimit(.minutes(1)))
struct BackendPropertyTests {
    private struct Outcome: Equatable {
        var events: [[UInt8]] = []
        var fault: ServerSentEventParser.Fault?
        var generated: [GenerationEvent] = []
        var failure: JobFailure?
    }

    /// Parser and decoder as a stream has them.
    private func read(_ pieces: [[UInt8]]) -> Outcome {
        var outcome = Outcome()
        var parser = ServerSentEventParser(limit: 2000)
        do throws(ServerSentEventParser.Fault) {
            for piece in pieces { try parser.feed(piece, into: &outcome.events) }
            try parser.finish(into: &outcome.events)
        } catch { outcome.fault = error }
        var decoder = ChatStreamDecoder(backend: "b")
        do throws(JobFailure) {
            for event in outcome.events { outcome.generated += try decoder.decode(event) }
            outcome.generated += decoder.finish()
        } catch { outcome.failure = error }
        return outcome
    }

    @Test(
        "a stream: noise and damage give events or a fault, the same wherever reads end",
        arguments: RandomInput.seeds(10))
    func streams(seed: UInt64) {
        var random = RandomInput(seed: seed)
        let valid = Array(ChatStreamTests.stream.utf8)
        for round in 0..<60 {
            let bytes = round % 4 == 0 ? random.noise(upTo: 300) : random.damaged(valid)
            let whole = read([bytes])
            if let failure = whole.failure {
                #expect(failure.message.unicodeScalars.count < 1200 && !failure.message.contains("\n"))
            }
            for _ in 0..<3 { #expect(read(random.pieces(bytes)) == whole) }
            #expect(read(bytes.map { [$0] }) == whole)
        }
    }

    @Test(
        "an event of a stream: any object in any member is text, nothing or a failure", arguments: RandomInput.seeds(6))
    func chatEvents(seed: UInt64) {
        var random = RandomInput(seed: seed)
        let valid = [
            #"{"choices":[{"index":0,"delta":{"role":"assistant","content":"a\ud83d"},"finish_reason":null}],"usage":{"prompt_tokens":1}}"#,
            #"{"choices":[{"index":1,"delta":{"reasoning_content":"b"}},{"index":0,"finish_reason":"length","delta":{}}]}"#,
            #"{"error":{"code":500,"message":"x","type":"server_error","n_ctx":5}}"#,
            #"{"prompt_progress":{"total":10,"processed":4,"cache":1},"timings":{"predicted_per_second":50.5}}"#,
        ].map { Array($0.utf8) }
        var decoder = ChatStreamDecoder(backend: "b")
        for round in 0..<600 {
            let data = round % 6 == 0 ? random.noise(upTo: 80) : random.damaged(random.pick(valid))
            do throws(JobFailure) {
                for event in try decoder.decode(data) {
                    if case .progress(let progress) = event { #expect((0...1).contains(progress.fraction ?? 0)) }
                }
            } catch {
                #expect(error.backend == "b")
                decoder = ChatStreamDecoder(backend: "b")
            }
            if decoder.isDone { decoder = ChatStreamDecoder(backend: "b") }
        }
    }

    @Test("B36: text in pieces is the text as a whole, however broken", arguments: RandomInput.seeds(8))
    func joining(seed: UInt64) {
        var random = RandomInput(seed: seed)
        // A pair of surrogates as WTF-8 has it among the rest.
        let valid = Array("aé€😀".utf8) + [0xED, 0xA0, 0xBD, 0xED, 0xB8, 0x80] + Array("\u{10FF41}z".utf8)
        func joined(_ pieces: [[UInt8]]) -> [UInt8] {
            var joiner = TextJoiner()
            var text = ""
            for piece in pieces { text += joiner.feed(CarriedBytes.text(piece)) }
            return Array((text + joiner.finish()).utf8)
        }
        #expect(joined([valid]) == Array("aé€😀😀\u{10FF41}z".utf8))
        for round in 0..<500 {
            let bytes = round % 4 == 0 ? random.noise(upTo: 20) : random.damaged(valid)
            let whole = joined([bytes])
            #expect(joined(random.pieces(bytes, upTo: 4)) == whole)
            #expect(joined(bytes.map { [$0] }) == whole)
            if let text = String(validating: bytes, as: UTF8.self) { #expect(whole == Array(text.utf8)) }
        }
    }

    @Test("an answer with an error status is a failure of one line, whatever its body", arguments: RandomInput.seeds(4))
    func errorBodies(seed: UInt64) {
        var random = RandomInput(seed: seed)
        let valid = Array(
            #"{"error":{"code":400,"message":"m","type":"exceed_context_size_error","n_prompt_tokens":1231}}"#.utf8)
        for round in 0..<400 {
            let body = round % 3 == 0 ? random.noise(upTo: 300) : random.damaged(valid)
            let status = random.pick([-1, 0, 100, 204, 302, 400, 401, 404, 429, 500, 503, 999, .max, .min])
            let failure = ChatError.failure(status: status, body: body, backend: "b")
            #expect(failure.message.unicodeScalars.count < 1200 && !failure.message.contains { $0.isNewline })
        }
    }

    @Test(
        "a delivery: noise and damage in body and properties are a job or a rejection", arguments: RandomInput.seeds(4))
    func deliveries(seed: UInt64) {
        var random = RandomInput(seed: seed)
        let body = Array(#"{"v":1,"id":"job-1","kind":"slogan","input":{"text":"coffee"},"metadata":{"a":[1]}}"#.utf8)
        func text(_ bytes: [UInt8]) -> String { String(decoding: bytes, as: UTF8.self) }
        for round in 0..<500 {
            var delivery = JobDelivery(
                pool: "text", lane: .batch, body: round % 4 == 0 ? random.noise(upTo: 100) : random.damaged(body))
            if random.number(upTo: 2) == 0 { delivery.messageID = text(random.damaged(Array("job-1".utf8))) }
            if random.number(upTo: 2) == 0 {
                delivery.contentType = text(random.damaged(Array("application/json".utf8)))
            }
            if random.number(upTo: 5) == 0 { delivery.contentEncoding = text(random.noise(upTo: 5)) }
            if let id = delivery.salvagedID { #expect(JobID(id.rawValue) == id) }
            do throws(JobRejection) {
                let job = try delivery.decode(JobLimits())
                #expect(job.pool == "text" && job.lane == .batch)
            } catch { #expect(!error.description.isEmpty) }
        }
    }

    @Test(
        "a worker's configuration: damage is a configuration or an error that names the file",
        arguments: RandomInput.seeds(4))
    func configuration(seed: UInt64) throws {
        var random = RandomInput(seed: seed)
        let path = "\(NSTemporaryDirectory())/gen-\(UUID().uuidString)"
        defer { unlink(path) }
        let valid = Array(
            """
            { backends: { a: { type: 'echo', delay: '5ms', times: 2 }, b: { type: 'llama-server', url: 'http://h:1/', parallel: 2 } },
              pools: { text: { kinds: ['slogan'], slots: 4, batch_min_slots: 1, backends: ['a', 'b'] } },
              templates: { slogan: { user: 'S {text}', options: { temperature: 0.1, stop: ['x'] } } },
              timers: { gap: '1m' }, drain: '25s', limits: { max_tokens: 100 } }
            """.utf8)
        for _ in 0..<150 {
            try Data(random.damaged(valid)).write(to: URL(filePath: path))
            do throws(ConfigurationError) {
                let configuration = try WorkerConfiguration.load(file: path, environment: ["GEN_MODEL": "/m.gguf"])
                #expect(!configuration.pools.isEmpty && !configuration.backends.isEmpty)
            } catch { #expect(!error.description.isEmpty) }
        }
    }
}
