import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

@Suite("Output filter")
struct OutputFilterTests {
    private func clean(_ pieces: [String], _ form: OutputFilter.Form) -> String {
        var filter = OutputFilter(form)
        var shown = ""
        for piece in pieces { shown += filter.feed(piece) }
        return shown + filter.finish()
    }

    static let slogans = [
        ("Wake up to more.", "Wake up to more."), ("  \n Wake up.\nSecond line", "Wake up."),
        ("\"Wake up.\"", "Wake up."), ("Slogan: \"Wake up.\"\n", "Wake up."), ("**Wake up.**", "Wake up."),
        ("1. Wake up.\n2. Sleep.", "Wake up."), ("- Wake up.", "Wake up."), ("“Wake up.” ", "Wake up."),
        ("Here is a slogan for your shop:\n\nWake up.", "Wake up."), ("Tagline: Wake up", "Wake up"),
        ("# Wake up", "Wake up"), ("Time: it matters", "Time: it matters"), ("7 days of coffee", "7 days of coffee"),
        ("Rock 'n' roll", "Rock 'n' roll"), ("Sloganeers unite", "Sloganeers unite"), ("é🚋 \u{0301}x", "é🚋 \u{0301}x"),
        ("", ""), ("   \n ", ""), ("Here is to you", "Here is to you"), ("Wake \"up\" now", "Wake \"up\" now"),
    ]

    static let texts = [
        ("One.\n\nTwo. \n", "One.\n\nTwo."), ("\"One.\n\nTwo.\"", "One.\n\nTwo."),
        ("Here is the rewritten text:\n\nThe bus, late.", "The bus, late."), ("Reply: Yes!", "Yes!"),
        ("Here is the thing: I am late", "Here is the thing: I am late"), ("1. One\n2. Two", "1. One\n2. Two"),
        ("Dear Ann,\nyes.\n\nBob", "Dear Ann,\nyes.\n\nBob"), ("She said \"no\".", "She said \"no\"."),
    ]

    @Test("a slogan is one line without labels, lists and quotation marks", arguments: slogans)
    func slogan(_ text: String, _ wanted: String) { #expect(clean([text], .line) == wanted) }

    @Test("a text keeps its paragraphs and loses what stands around it", arguments: texts)
    func text(_ text: String, _ wanted: String) { #expect(clean([text], .text) == wanted) }

    @Test("how an answer is cut into pieces changes nothing", arguments: UInt64(0)..<300)
    func splits(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        for (form, cases) in [(OutputFilter.Form.line, Self.slogans), (.text, Self.texts)] {
            for (text, wanted) in cases {
                var pieces: [String] = []
                var rest = Array(text.unicodeScalars)[...]
                while !rest.isEmpty {
                    let count = min(rest.count, Int.random(in: 1...5, using: &generator))
                    var piece = String.UnicodeScalarView()
                    piece.append(contentsOf: rest.prefix(count))
                    pieces.append(String(piece))
                    rest = rest.dropFirst(count)
                }
                #expect(clean(pieces, form) == wanted, "\(pieces)")
            }
        }
    }

    @Test("a slogan is ended by its first line end, which stops the backend")
    func ended() {
        var filter = OutputFilter(.line)
        _ = filter.feed("Wake up")
        #expect(!filter.isEnded)
        _ = filter.feed(" now\nand")
        #expect(filter.isEnded && filter.feed("more") == "" && filter.finish() == "")
    }

    @Test("a result for a schema comes as it is")
    func verbatim() { #expect(clean([" {\"a\":", "1}\n"], .verbatim) == " {\"a\":1}\n") }

    @Test("braces in the user's own text stay what they are")
    func template() throws {
        let template = PromptTemplate(system: "s", user: "{style}|{text}|{other}", defaultStyle: "d", options: .init())
        let messages = template.messages(for: .init(text: "a {style} {text} b"))
        #expect(messages.last?.content == "d|a {style} {text} b|{other}")
    }
}
