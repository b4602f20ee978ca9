import GenShared
import GenTestSupport
import Testing

@testable import GenDispatcher

@Suite("Input and output: random input", .timeLimit(.minutes(1)))
struct InputPropertyTests {
    @Test("B20: standard input is text as it stands, or refused with a place in it", arguments: RandomInput.seeds(6))
    func inputText(seed: UInt64) {
        var random = RandomInput(seed: seed)
        let valid = Array("\u{FEFF}Grüße 🚋\r\nzwei\n".utf8)
        for round in 0..<600 {
            let bytes = round % 3 == 0 ? random.noise(upTo: 40) : random.damaged(valid)
            do throws(UsageError) {
                let text = Array(try InputText.decode(bytes).utf8)
                let body = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
                #expect(["", "\n", "\r\n"].contains { text + Array($0.utf8) == body })
            } catch {
                let isText = String(validating: bytes, as: UTF8.self) != nil
                #expect(error.description.contains(isText ? "NUL" : "byte "))
            }
        }
    }

    @Test("B46: nothing that a terminal obeys is ever shown, whatever an event holds", arguments: RandomInput.seeds(6))
    func rendering(seed: UInt64) throws {
        var random = RandomInput(seed: seed)
        let id = try #require(JobID("job"))
        let hostile = ["\u{1B}]52;c;x\u{7}", "\u{1B}[2J", "\u{9B}2J", "\u{202E}", "\0", "\r", "text", "\n", "🚋"]
        for _ in 0..<300 {
            var renderer = WatchRenderer(style: random.pick([.text, .json, .jsonEnd, .result]), isTerminal: true)
            var previous = EventID.queued
            for _ in 0..<5 {
                let text = (0..<random.number(upTo: 4)).map { _ in random.pick(hostile) }.joined()
                let contents: [JobEvent.Content] = [
                    .chunk(text), .started(attempt: 2, worker: text, backend: text, model: text, restarted: true),
                    .retrying(reason: text, error: JobFailure(.internal, text), delaySeconds: .greatestFiniteMagnitude),
                    .failed(JobFailure(.internal, text), partial: nil),
                    .cancelled(by: text, latencyMilliseconds: 1, partial: nil),
                    .completed(
                        Completion(
                            result: text, finishReason: FinishReason(rawValue: text), usage: nil,
                            stats: Stats(
                                queueMilliseconds: .max, firstTokenMilliseconds: .min, totalMilliseconds: 0,
                                tokensPerSecond: .greatestFiniteMagnitude))),
                ]
                let event = JobEvent(id: previous.next, previous: previous, content: random.pick(contents))
                previous = event.id
                let output = renderer.render(.event(event), id: id)
                for scalar in output.text.unicodeScalars + output.notes.joined().unicodeScalars {
                    #expect(scalar == "\n" || scalar == "\t" || !(scalar.properties.generalCategory == .control))
                    #expect(scalar != "\u{202E}")
                }
                for note in output.notes { #expect(!note.contains("\n")) }
            }
        }
    }
}
