import Testing

@testable import GenShared

@Suite("JSON parser: strings", .timeLimit(.minutes(1)))
struct JSONStringTests {
    private func quoted(_ bytes: [UInt8]) -> [UInt8] { [0x22] + bytes + [0x22] }

    /// Compares code points: two strings that only look the same must not pass for equal.
    private func scalars(_ text: String?) -> [UInt32]? { text.map { $0.unicodeScalars.map(\.value) } }

    @Test(
        "every escape of the standard is read",
        arguments: [
            (#""\"\\\/\b\f\n\r\t""#, "\"\\/\u{8}\u{C}\n\r\t"), (#""\u0041\u00e9\u00E9\u20ac""#, "Aéé€"),
            (#""\ud83d\ude00""#, "😀"), (#""a\uD83D\uDE00b""#, "a😀b"),
            (#""\ud800\udc00\udbff\udfff""#, "\u{10000}\u{10FFFF}"),
            (#""\u0001\u001f\u007f""#, "\u{1}\u{1F}\u{7F}"), (#""\ud7ff\ue000\uffff""#, "\u{D7FF}\u{E000}\u{FFFF}"),
            (#""\r\n""#, "\r\n"), (#""\u000d\u000a\u0301""#, "\r\n\u{301}"), (#""\\u0041""#, "\\u0041"),
        ])
    func readsEscapes(text: String, expected: String) throws {
        #expect(scalars(try JSONParser.parse(text).string) == scalars(expected))
        #expect(scalars(try JSONParser.parse(text, options: .lenient).string) == scalars(expected))
    }

    @Test("text is not normalised: composed and decomposed stay as they were")
    func keepsCodePoints() throws {
        for text in ["e\u{301}", "\u{E9}", "\u{212A}", "a\u{7F}\u{2028}\u{FFFE}", "\u{301}"] {
            #expect(scalars(try JSONParser.parse("\"\(text)\"").string) == scalars(text))
        }
    }

    @Test(
        "a broken escape is refused in both modes",
        arguments: [
            #""\""#, #""\"#, #""\x41""#, #""\a""#, #""\0""#, #""\'""#, #""\U0041""#, #""\u""#, #""\u1""#, #""\u12""#,
            #""\u123""#,
            #""\u12G4""#, #""\u 123""#, #""\u+123""#, #""\u-123""#, #""\u１２３４""#, #""\u{41}""#, #""\ud800\u""#,
            #""\ud800\uZZZZ""#,
        ])
    func refusesBrokenEscapes(text: String) {
        #expect(jsonError(text) != nil)
        #expect(jsonError(text, .lenient) != nil)
    }

    @Test("a bare control character is refused", arguments: UInt8(0)..<0x20)
    func refusesControlCharacters(byte: UInt8) {
        #expect(jsonError(quoted([0x61, byte, 0x61])) != nil)
        #expect(jsonError(quoted([0x5C, 0x6E, byte])) != nil)  // Behind an escape, too.
        #expect(jsonError(quoted([byte]), .lenient) != nil)
    }

    @Test(
        "a string without end is refused", arguments: [#"""#, #""abc"#, #""abc\n"#, #"{"a"#, #"{"a":"b"#, #"["\u0041"#])
    func refusesEndlessStrings(text: String) {
        #expect(jsonError(text) != nil)
        #expect(jsonError(text, .lenient) != nil)
    }

    @Test(
        "B04: half of a surrogate pair is refused in strict mode, U+FFFD in lenient",
        arguments: [
            (#"\ud800"#, "\u{FFFD}"), (#"\udc00"#, "\u{FFFD}"), (#"\uDFFF"#, "\u{FFFD}"), (#"a\udbffb"#, "a\u{FFFD}b"),
            (#"\ud800\u0041"#, "\u{FFFD}A"), (#"\ud800\ud800"#, "\u{FFFD}\u{FFFD}"), (#"\ud800\n"#, "\u{FFFD}\n"),
            (#"\udc00\ud800"#, "\u{FFFD}\u{FFFD}"), (#"\ud83d\ud83d\ude00"#, "\u{FFFD}😀"),
            (#"\ud83d \ude00"#, "\u{FFFD} \u{FFFD}"),
        ])
    func handlesLoneSurrogates(escape: String, repaired: String) throws {
        #expect(try #require(jsonError("\"\(escape)\"")).reason == "half of a surrogate pair stands alone")
        #expect(jsonError("{\"\(escape)\":1}") != nil)
        #expect(scalars(try JSONParser.parse("\"\(escape)\"", options: .lenient).string) == scalars(repaired))
    }

    @Test("B04: an escaped NUL is refused in strict mode, U+FFFD in lenient")
    func handlesNUL() throws {
        #expect(try #require(jsonError(#""a\u0000b""#)).reason == "a string must not hold NUL")
        #expect(jsonError(#"{"\u0000":1}"#) != nil)
        #expect(try JSONParser.parse(#""a\u0000b""#, options: .lenient).string == "a\u{FFFD}b")
    }

    @Test(
        "B04: bytes that are not UTF-8 are refused in strict mode and repaired in lenient",
        arguments: [
            [0x80], [0xBF], [0xC3], [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x80, 0x80], [0xE2, 0x82], [0xED, 0xA0, 0x80],
            [0xED, 0xBF, 0xBF], [0xF0, 0x9F, 0x98], [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0xFE], [0xFF],
        ] as [[UInt8]])
    func handlesInvalidUTF8(bytes: [UInt8]) throws {
        // On the fast path and, behind an escape, on the slow one.
        for prefix in [[0x61], [0x5C, 0x74]] as [[UInt8]] {
            let text = quoted(prefix + bytes + [0x7A])
            #expect(try #require(jsonError(text)).reason == "a string is not valid UTF-8")
            let repaired = try #require(try JSONParser.parse(text, options: .lenient).string)
            #expect(repaired.contains("\u{FFFD}"))
            #expect(repaired.hasSuffix("z"))
        }
    }

    @Test("invalid UTF-8 in a name is refused in strict mode")
    func refusesInvalidUTF8InNames() {
        #expect(jsonError([0x7B, 0x22, 0xFF, 0x22, 0x3A, 0x31, 0x7D]) != nil)
        #expect(jsonError([0x7B, 0x22, 0xFF, 0x22, 0x3A, 0x31, 0x7D], .lenient) == nil)
    }

    @Test("invalid UTF-8 outside of strings is refused in both modes")
    func refusesInvalidUTF8OutsideStrings() {
        for bytes in [[0xFF], [0x5B, 0xC3, 0x5D], [0x31, 0x80], [0xEF, 0xBB, 0xBF, 0x31]] as [[UInt8]] {
            #expect(jsonError(bytes) != nil)
            #expect(jsonError(bytes, .lenient) != nil)
        }
    }

    @Test("a long string is read whole, with and without escapes")
    func readsLongStrings() throws {
        let text = String(repeating: "äöü😀", count: 50_000)
        #expect(try JSONParser.parse("\"\(text)\"").string == text)
        #expect(try JSONParser.parse("\"\\n\(text)\"").string == "\n\(text)")
    }
}
