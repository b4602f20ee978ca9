import GenTestSupport
import Testing

@testable import GenShared

@Suite("Terminal text")
struct TerminalTextTests {
    @Test(
        "B46: what a terminal would obey is dropped, and the rest of it is plain text",
        arguments: [
            ("\u{1B}]52;c;cGF3bg==\u{07}", "]52;c;cGF3bg=="), ("\u{1B}[2J\u{1B}[H", "[2J[H"),
            ("\u{9B}31mred", "31mred"),
            ("a\rb", "ab"), ("a\u{08}b", "ab"), ("\u{0}x\u{7F}", "x"), ("\u{202E}abc\u{202C}", "abc"),
            ("\u{2066}a\u{2069}\u{200F}", "a"), ("\u{90}q\u{9C}", "q"), ("a\u{0C}b\u{0B}c", "abc"),
        ])
    func dropped(_ text: String, _ safe: String) { #expect(TerminalText.safe(text) == safe) }

    @Test(
        "line ends, tabs, letters of every script and joined emoji stay",
        arguments: [
            "a\tb\nc", "Grüße", "日本語", "العربية", "👩\u{200D}🍳 🇫🇷 e\u{301}", "",
        ])
    func kept(_ text: String) { #expect(Array(TerminalText.safe(text).unicodeScalars) == Array(text.unicodeScalars)) }

    @Test("B46: JSON keeps its meaning and its line, with what a terminal would obey escaped there")
    func json() throws {
        let text = "{\"a\":\"x\u{9B}2J\u{202E}y\u{7F}é🚋\",\r\n\t\"b\": 1}"
        let shown = TerminalText.json(text, forTerminal: true)
        #expect(shown == "{\"a\":\"x\\u009b2J\\u202ey\\u007fé🚋\",  \t\"b\": 1}")
        #expect(try JSONParser.parse(shown) == JSONParser.parse(text))
        #expect(TerminalText.json(text, forTerminal: false) == text.replacing("\r\n", with: "  "))
        #expect(TerminalText.line("a\nb\r\nc\u{2028}d\u{1B}[2J") == "a b c d[2J")
    }

    @Test("B46: pieces cleaned one by one give the same as the whole")
    func pieces() {
        let text = "a\u{1B}]0;title\u{07}b\u{1B}[1;31mc\r\nd\u{9D}e\u{301}👩\u{200D}🍳\u{202E}f"
        let whole = TerminalText.safe(text)
        for pieces in Splits.all(of: text) {
            #expect(Array(pieces.map(TerminalText.safe).joined().unicodeScalars) == Array(whole.unicodeScalars))
        }
    }
}
