import GenShared
import Testing

@testable import GenDispatcher

@Suite("Watch output")
struct WatchRendererTests {
    private let id = JobID(atMilliseconds: 0)

    private func shown(_ contents: [JobEvent.Content], _ style: WatchStyle, isTerminal: Bool = false) -> (
        String, [String]
    ) {
        var renderer = WatchRenderer(style: style, isTerminal: isTerminal)
        var text = ""
        var notes: [String] = []
        var last = EventID.origin
        for content in contents {
            let event = JobEvent(id: last.next, previous: last, content: content)
            last = event.id
            let output = renderer.render(.event(event), id: id)
            text += output.text
            notes += output.notes
        }
        return (text, notes)
    }

    private let completed = JobEvent.Content.completed(
        Completion(
            result: "ab", finishReason: .stop, usage: Usage(promptTokens: 3, completionTokens: 2),
            stats: Stats(queueMilliseconds: 1, firstTokenMilliseconds: 2, totalMilliseconds: 3, tokensPerSecond: 12.34))
    )

    @Test("text is shown as it comes, once, with one line end at the end and the figures beside it")
    func text() {
        let (text, notes) = shown([.queued, .chunk("a"), .chunk("b"), completed], .text)
        #expect(text == "ab\n")
        #expect(notes.count == 1 && notes[0].contains("3 prompt + 2 completion") && notes[0].contains("12.3 tokens/s"))
    }

    @Test("where no text was seen the result is shown at the end")
    func resultOnly() {
        #expect(shown([completed], .text).0 == "ab\n")
        #expect(shown([.chunk("a"), .chunk("b"), completed], .result).0 == "ab\n")
    }

    @Test("a restart stands between the texts of two attempts")
    func restart() {
        let second = JobEvent.Content.started(attempt: 2, worker: "w", backend: nil, model: nil, restarted: true)
        let (text, _) = shown([.chunk("a"), second, .chunk("ab"), completed], .text)
        #expect(text == "a\n[attempt 2 starts over]\nab\n")
        #expect(shown([second, .chunk("ab"), completed], .text).0 == "ab\n")
    }

    @Test("B46: on a terminal what it would obey is dropped, in a pipe the text stays as it is")
    func escapes() {
        let nasty = "a\u{1B}[2Jb"
        #expect(shown([.chunk(nasty)], .text, isTerminal: true).0 == "a[2Jb")
        #expect(shown([.chunk(nasty)], .text).0 == nasty)
    }

    @Test("a delay that fits no integer is shown, too")
    func absurdDelay() {
        let retrying = JobEvent.Content.retrying(reason: "failure", error: nil, delaySeconds: 1e300)
        #expect(shown([retrying], .text).1.count == 1)
    }

    @Test("json shows each event on a line, or only the last")
    func json() {
        #expect(shown([.queued, .chunk("a"), completed], .json).0.split(separator: "\n").count == 3)
        let last = shown([.queued, .chunk("a"), completed], .jsonEnd).0
        #expect(last.split(separator: "\n").count == 1 && last.contains("\"completed\""))
        #expect(shown([.chunk("a"), completed], .silent).0 == "")
    }

    @Test("failures, cancels and expiry are told on standard error")
    func endings() {
        for (content, word) in [
            (JobEvent.Content.failed(JobFailure(.timeout, "too slow"), partial: nil), "too slow"),
            (.cancelled(by: "me", latencyMilliseconds: 5, partial: nil), "by me within 5 ms"), (.expired, "expired"),
        ] {
            let (text, notes) = shown([.chunk("a"), content], .text)
            #expect(text == "a\n" && notes.count == 1 && notes[0].contains(word))
        }
    }

    @Test("input drops a byte order mark and the last line end, and refuses what is not UTF-8 with its place")
    func input() throws {
        #expect(try InputText.decode([0xEF, 0xBB, 0xBF] + Array("a\r\nb\r\n".utf8)) == "a\r\nb")
        #expect(try InputText.decode(Array("a\n\n".utf8)) == "a\n")
        do throws(UsageError) {
            _ = try InputText.decode(Array("abé".utf8) + [0xFF])
            Issue.record("accepted")
        } catch { #expect(error.description.contains("byte 4")) }
        #expect(throws: UsageError.self) { try InputText.decode([0x61, 0, 0x62]) }
    }
}
