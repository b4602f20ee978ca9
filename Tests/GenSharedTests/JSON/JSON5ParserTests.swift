import GenTestSupport
import Testing

@testable import GenShared

@Suite("JSON5 parser", .timeLimit(.minutes(1)))
struct JSON5ParserTests {
    private func value(_ text: String) throws -> JSONValue { try JSON5Parser.parse(Array(text.utf8)).value }

    private func refusal(_ bytes: [UInt8]) -> JSON5Error? {
        do throws(JSON5Error) {
            _ = try JSON5Parser.parse(bytes)
            return nil
        } catch { return error }
    }

    @Test("the standard's own example is read")
    func example() throws {
        let text = """
            \u{FEFF}{
              // comments
              unquoted: 'and you can quote me on that',
              singleQuotes: 'I can use "double quotes" here',
              lineBreaks: "Look, Mom! \\
            No \\\\n's!",
              hexadecimal: 0xdecaf,
              leadingDecimalPoint: .8675309, andTrailing: 8675309.,
              positiveSign: +1,
              trailingComma: 'in objects', andIn: ['arrays',],
              "backwardsCompatible": "with JSON", /* the
              end */
            }
            """
        let object = try #require(try value(text).object)
        #expect(object["unquoted"]?.string == "and you can quote me on that")
        #expect(object["lineBreaks"]?.string == "Look, Mom! No \\n's!")
        #expect(object["hexadecimal"] == .integer(0xdecaf) && object["positiveSign"] == .integer(1))
        #expect(object["leadingDecimalPoint"] == .number(0.8675309) && object["andTrailing"] == .number(8_675_309))
        #expect(object["andIn"] == .array([.string("arrays")]) && object.members.count == 10)
        let lines = try JSON5Parser.parse(Array(text.utf8)).lines
        #expect(lines["unquoted"] == 3 && lines["hexadecimal"] == 7 && lines["andIn"] == 10)
        #expect(lines["backwardsCompatible"] == 11)
    }

    @Test(
        "numbers are read in every form of the standard",
        arguments: [
            ("0", JSONValue.integer(0)), ("-0x10", .integer(-16)), ("+0XfF", .integer(255)),
            ("-1.5e-1", .number(-0.15)),
            ("1e3", .number(1000)), ("5.", .number(5)), ("-.5", .number(-0.5)), ("1.E+2", .number(100)),
            ("9223372036854775807", .integer(.max)), ("0x7fffffffffffffff", .integer(.max)),
        ])
    func numbers(_ text: String, _ wanted: JSONValue) throws { #expect(try value(text) == wanted) }

    @Test(
        "what is no number, or does not fit, is refused",
        arguments: [
            "01", "-", "+", ".", "-.", "0x", "0xg", "1e", "1e+", "1e400", "0x8000000000000000", "Infinity", "-Infinity",
            "NaN", "+NaN", "1a", "1.2.3", "1_000", "0b1", "--1", "1e1e1", "٣", String(repeating: "9", count: 100_000),
            "0x" + String(repeating: "0", count: 100), "1.\\u0061",
        ])
    func noNumbers(_ text: String) { #expect(refusal(Array(text.utf8)) != nil) }

    @Test(
        "strings are read with every escape",
        arguments: [
            (#"'a"b'"#, "a\"b"), (#""it's""#, "it's"), (#"'\'\"\\\/\b\f\n\r\t\v\q'"#, "'\"\\/\u{8}\u{C}\n\r\t\u{B}q"),
            (#"'\x41\u00e9\ud83d\ude00'"#, "Aé😀"), ("'a\\\r\nb\\\nc\\\rd\\\u{2028}e'", "abcde"),
            ("'\u{2028}'", "\u{2028}"),
        ])
    func strings(_ text: String, _ wanted: String) throws { #expect(try value(text) == .string(wanted)) }

    @Test(
        "what is no string is refused",
        arguments: [
            "'", "'a", "'a\"", "'a\nb'", "\"a\rb\"", #"'\x4'"#, #"'\xg1'"#, #"'\u12'"#, #"'\1'"#, #"'\0'"#, #"'\x00'"#,
            #"'\u0000'"#, "'\0'", #"'\ud800'"#, #"'\ud800\u0041'"#, #"'\ude00'"#, "'\\", "'\\u", "text",
        ])
    func noStrings(_ text: String) { #expect(refusal(Array(text.utf8)) != nil) }

    @Test(
        "names without quotes are those of ECMAScript",
        arguments: [
            ("$", "$"), ("_a1", "_a1"), ("ünïcödé", "ünïcödé"), ("\\u0061b", "ab"), ("a\u{200D}b", "a\u{200D}b"),
            ("null", "null"),
        ])
    func names(_ text: String, _ wanted: String) throws {
        #expect(try value("{\(text): 1}").object?.members.first?.key == wanted)
    }

    @Test(
        "what is broken is refused with its place",
        arguments: [
            ("", 1, 1), ("{", 1, 2), ("{a}", 1, 3), ("{a:1", 1, 5), ("{a:1 b:2}", 1, 6), ("{,}", 1, 2), ("[,]", 1, 2),
            ("[1,,2]", 1, 4), ("[1}", 1, 3), ("{1a: 2}", 1, 2), ("{a-b: 1}", 1, 3), ("1 2", 1, 3), ("/* x", 1, 1),
            ("/", 1, 1), ("[1]\n\n/x", 3, 1), ("{\n  a: 1,\r\n  b: tru\n}", 3, 6), ("{a: 1,\n\n a: 2}", 3, 2),
            ("{\\x61: 1}", 1, 2), ("{a\\u0020: 1}", 1, 3),
        ])
    func places(_ text: String, _ line: Int, _ column: Int) throws {
        let error = try #require(refusal(Array(text.utf8)))
        #expect(error.line == line && error.column == column, "\(error)")
    }

    @Test("text that is not UTF-8 is refused with its line")
    func notUTF8() throws {
        let error = try #require(refusal(Array("{\n a: 'é\n".utf8) + [0xFF]))
        #expect(error == JSON5Error(line: 3, column: nil, reason: "the text is not UTF-8"))
    }

    @Test("B27: 32 levels are the most, and 100,000 open brackets no danger", arguments: ["[", "{a:", "[{a:"])
    func depth(_ open: String) {
        #expect(refusal(Array(String(repeating: open, count: 100_000).utf8))?.reason.hasPrefix("more than 32") == true)
        #expect(refusal(Array((String(repeating: "[", count: 32) + String(repeating: "]", count: 32)).utf8)) == nil)
        #expect(refusal(Array((String(repeating: "[", count: 33) + String(repeating: "]", count: 33)).utf8)) != nil)
    }

    @Test("whatever JSON is, JSON5 is, with the same meaning", arguments: 1...8)
    func containsJSON(seed: UInt64) throws {
        var random = RandomJSON(seed: 700 + seed)
        for _ in 0..<100 {
            let value = random.value()
            #expect(try JSON5Parser.parse(Array(value.serialized.utf8)).value == value)
        }
    }
}
