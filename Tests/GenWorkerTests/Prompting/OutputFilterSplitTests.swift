import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

/// Where a model's pieces end is chance; what is shown must not depend on it.
@Suite("Output filter, cut anywhere", .timeLimit(.minutes(2)))
struct OutputFilterSplitTests {
    private func clean(_ pieces: [String], _ form: OutputFilter.Form) -> String {
        var filter = OutputFilter(form)
        var shown = ""
        for piece in pieces { shown += filter.feed(piece) }
        return shown + filter.finish()
    }

    private static let answers = [
        "Slogan: \"Wake up.\"\nSecond", "**Slogan:** Wake up!", "# Slogan: Wake up", "## Rewrite: The bus",
        "1. Coffee time: wake up!", "- Best: coffee", "Sure! Here is a tagline for you:\n\n\"Brew bold.\"",
        "Here's the rewritten draft:\r\n\r\nOne.\r\n\r\nTwo.\r\n", "\u{201C}Wake up\u{201D} \r\n", "Slogan\n: odd",
        "🇫🇷 coffee 👩\u{200D}🍳 cafe\u{301} 1\u{FE0F}\u{20E3} go", "*\u{FE0F}\u{20E3} star", "\"e\u{301}te\u{301}\"",
        " \u{301}accent first", "Slogan:\u{301} no label", "\"\u{301}no quote", "1. \u{301}no mark", "---\nLine",
        "Text : spaced", "Certainly not", "Here is to those who brew: cheers", "'n' roll", "Reply:   \n\n  Yes.",
        String(repeating: "-", count: 60) + " dashes", String(repeating: "#", count: 50) + "x: y", "7", "7.", "7. ",
    ]

    @Test("any answer cut in two, or into single scalars, is shown as if it came at once", arguments: answers)
    func everyCut(_ answer: String) {
        for form in [OutputFilter.Form.line, .text, .verbatim] {
            let whole = clean([answer], form)
            for pieces in Splits.all(of: answer) {
                #expect(
                    Array(clean(pieces, form).unicodeScalars) == Array(whole.unicodeScalars), "\(pieces) as \(form)")
            }
        }
    }

    /// What the rules look at, and a few that join with their neighbours.
    private static let parts = [
        "slogan", "Slogan", "reply", "text", "rewritten ", "here is ", "Here's", "sure, here", "a ", "draft", ":", ":",
        "\"", "'", "*", "**", "_", "\u{201C}", "\u{201D}", "-", "#", "1", ".", ") ", " ", " ", "\n", "\r\n", "\t",
        "\u{301}", "\u{FE0F}", "\u{200D}", "👩", "🍳", "x", "é", "wake up",
    ]

    @Test("whatever the parts of an answer are, the cuts change nothing", arguments: UInt64(0)..<40)
    func randomAnswers(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for _ in 0..<50 {
            let count = Int.random(in: 1...8, using: &generator)
            let answer = (0..<count).compactMap { _ in Self.parts.randomElement(using: &generator) }.joined()
            for form in [OutputFilter.Form.line, .text] {
                let whole = Array(clean([answer], form).unicodeScalars)
                for _ in 0..<4 {
                    let pieces = Splits.random(of: Array(answer.unicodeScalars), upTo: 4, using: &generator)
                        .map(Splits.string)
                    #expect(Array(clean(pieces, form).unicodeScalars) == whole, "\(pieces) as \(form)")
                }
                let single = answer.unicodeScalars.map { Splits.string([$0]) }
                #expect(Array(clean(single, form).unicodeScalars) == whole, "\(single) as \(form)")
            }
        }
    }

    @Test("an answer without label, mark and quotation mark loses nothing but white space around it")
    func nothingLost() {
        var generator = SeededGenerator(seed: 7)
        let words = [
            "coffee", "Wake", "up", "isn't", "5 * 3", "a_b", "\"so\"", "re: you", "e\u{301}", "👩\u{200D}🍳", "#1",
        ]
        for _ in 0..<300 {
            let count = Int.random(in: 1...12, using: &generator)
            let body =
                "Best " + (0..<count).compactMap { _ in words.randomElement(using: &generator) }.joined(separator: " ")
            let pieces = Splits.random(of: Array(" \(body)\n".unicodeScalars), upTo: 5, using: &generator)
            #expect(clean(pieces.map(Splits.string), .text) == body)
        }
    }

    @Test("every scalar that is shown is whole, and shown as early as nothing can take it back")
    func early() {
        var filter = OutputFilter(.text)
        #expect(filter.feed("One") == "One")
        #expect(filter.feed(" two ") == " two")
        #expect(filter.feed("\n") == "")
        #expect(filter.feed("three") == " \nthree")
        #expect(filter.finish() == "")
    }

    @Test("the form follows the job: a slogan is a line, other kinds are text, a schema takes all as it comes")
    func forms() {
        func shown(_ kind: JobKind, schema: JSONValue? = nil) -> String {
            var filter = OutputFilter(
                for: Job(id: JobID(atMilliseconds: 1), kind: kind, input: JobInput(text: "x", schema: schema)))
            return filter.feed(" \"a\nb\" ") + filter.finish()
        }
        #expect(shown(.slogan) == "a")
        #expect(shown(.rewrite) == "a\nb" && shown(.reply) == "a\nb")
        #expect(shown(.slogan, schema: .object([:])) == " \"a\nb\" ")
    }
}
