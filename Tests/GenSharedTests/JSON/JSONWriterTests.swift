import Testing

@testable import GenShared

@Suite("JSON writer", .timeLimit(.minutes(1)))
struct JSONWriterTests {
    @Test(
        "a value has one form",
        arguments: [
            (JSONValue.null, "null"), (.bool(true), "true"), (.bool(false), "false"),
            (.integer(.min), "-9223372036854775808"),
            (.integer(.max), "9223372036854775807"), (.number(0.1), "0.1"), (.number(-2.5e-10), "-2.5e-10"),
            (.number(1e300), "1e+300"), (.number(3), "3"), (.number(-0.0), "0"), (.string(""), #""""#),
            (.array([]), "[]"),
            (.object([:]), "{}"),
            (.array([.null, .array([.integer(1), .integer(2)]), .object([:])]), "[null,[1,2],{}]"),
            (.object(["b": .integer(1), "a": .object(["c": .array([])])]), #"{"b":1,"a":{"c":[]}}"#),
        ])
    func writesValues(value: JSONValue, text: String) {
        #expect(value.serialized == text)
    }

    @Test("a number that is not finite becomes null", arguments: [Double.nan, .infinity, -.infinity, .signalingNaN])
    func writesNoInfinity(number: Double) {
        #expect(JSONValue.number(number).serialized == "null")
    }

    @Test(
        "text is escaped where it must be, and only there",
        arguments: [
            ("a\"b\\c/d", #""a\"b\\c/d""#), ("\n\r\t", #""\n\r\t""#), ("\r\n", #""\r\n""#),
            ("\0\u{1}\u{1F}\u{7F}", #""\u0000\u0001\u001f\u007f""#),
            ("\u{8}\u{C}", #""\u0008\u000c""#), ("é€😀", #""é€😀""#), ("e\u{301}", "\"e\u{301}\""), ("<&>'", #""<&>'""#),
        ])
    func escapesText(text: String, expected: String) {
        #expect(Array(JSONValue.string(text).serialized.utf8) == Array(expected.utf8))
        #expect(JSONValue.object([text: .null]).serialized == "{\(expected):null}")
    }

    @Test("what is written stands on one line")
    func writesOneLine() {
        let controls = String(String.UnicodeScalarView((0..<0x20).compactMap { Unicode.Scalar(UInt8($0)) }))
        let bytes = JSONValue.object([controls: .string(controls)]).serialized.utf8
        #expect(bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F })
    }

    @Test("commas are set between members and elements at every level")
    func setsCommas() {
        var writer = JSONWriter(capacity: 0)
        writer.beginObject()
        writer.key("list")
        writer.beginArray()
        writer.beginObject()
        writer.endObject()
        writer.beginArray()
        writer.endArray()
        writer.value("x")
        writer.value(Int64(1))
        writer.value(0.5)
        writer.value(true)
        writer.value(JSONValue.null)
        writer.raw(#"{"raw":1}"#)
        writer.endArray()
        writer.member("s", "t")
        writer.member("i", 2)
        writer.member("j", .array([.integer(1)]))
        writer.endObject()
        #expect(writer.text == #"{"list":[{},[],"x",1,0.5,true,null,{"raw":1}],"s":"t","i":2,"j":[1]}"#)
        #expect(writer.bytes == Array(writer.text.utf8))
    }

    @Test("a member that is not present leaves nothing behind")
    func leavesOutMissing() {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("a", ifPresent: String?.none)
        writer.member("b", ifPresent: Int?.none)
        writer.member("c", ifPresent: Double?.none)
        writer.member("d", ifPresent: Bool?.none)
        writer.member("e", ifPresent: "x")
        writer.member("f", ifPresent: 1)
        writer.member("g", ifPresent: 1.5)
        writer.member("h", ifPresent: false)
        writer.endObject()
        #expect(writer.text == #"{"e":"x","f":1,"g":1.5,"h":false}"#)
    }
}
