import GenShared
import GenTestSupport
import Testing

@Suite("JSON parser")
struct JSONParserTests {
    @Test("values keep their kind, and integers stay whole")
    func values() throws {
        let value = try JSONParser.parse(#" {"a":[1,-2,3.5,1e2,true,false,null,"x\n\u00e9\ud83d\ude8b"],"b":{}} "#)
        #expect(value["a"]?.array?.map(\.kindName).count == 8)
        #expect(value["a"]?.array?[0] == .integer(1))
        #expect(value["a"]?.array?[3] == .number(100))
        #expect(value["a"]?.array?[7] == .string("x\né🚋"))
        #expect(try JSONParser.parse("9223372036854775807") == .integer(.max))
        #expect(try JSONParser.parse("9223372036854775808").integer == nil)
    }

    @Test(
        "what is no JSON, or more than JSON, is refused",
        arguments: [
            "", " ", "nul", "tru", "[", "{", "[1,]", "{\"a\"}", "{\"a\":}", "{,}", "[1 2]", "01", "-", "1.", ".5", "1e",
            "+1", "NaN", "Infinity", "1e400", "\"", "\"\\x\"", "\"\\u12\"", "\"\\ud800\"", "\"\\ud800\\u0041\"",
            "\"\\udc00\"", "\"\\u0000\"", "\"\u{01}\"", "{} x", "[] []", "{\"a\":1,\"a\":2}", "'a'", "// c",
        ])
    func refused(_ text: String) {
        #expect(throws: JSONError.self) { try JSONParser.parse(text) }
    }

    @Test("every beginning of a document is refused, none traps")
    func prefixes() throws {
        let text = #"{"v":1,"id":"a","list":[1,2.5e3,{"b":null}],"text":"é\u00e9\ud83d\ude8b\\","t":true}"#
        let bytes = Array(text.utf8)
        _ = try JSONParser.parse(bytes)
        for count in 0..<bytes.count {
            #expect(throws: JSONError.self) { try JSONParser.parse(Array(bytes[..<count])) }
        }
    }

    @Test("nesting beyond 32 is refused without using the stack for it")
    func depth() throws {
        _ = try JSONParser.parse(String(repeating: "[", count: 32) + String(repeating: "]", count: 32))
        for count in [33, 100_000] {
            #expect(throws: JSONError.self) { try JSONParser.parse(String(repeating: "[", count: count)) }
        }
    }

    @Test("a doubled name is found among few and among many members")
    func duplicates() throws {
        for count in [2, 15, 16, 17, 40, 2000] {
            let members = (0..<count).map { "\"k\($0)\":1" }
            _ = try JSONParser.parse("{\(members.joined(separator: ","))}")
            for twin in Set([0, count / 2, count - 1]) {
                let doubled = (members + ["\"k\(twin)\":2"]).joined(separator: ",")
                #expect(throws: JSONError.self) { try JSONParser.parse("{\(doubled)}") }
            }
        }
    }

    @Test("broken text is refused when strict and repaired when lenient")
    func repair() throws {
        let broken: [[UInt8]] = [[0x22, 0xFF, 0x22], Array("\"\\ud800\"".utf8), Array("\"\\u0000\"".utf8)]
        for bytes in broken {
            #expect(throws: JSONError.self) { try JSONParser.parse(bytes) }
            #expect(try JSONParser.parse(bytes, options: .lenient) == .string("\u{FFFD}"))
        }
    }

    @Test("random values come back from their text as they were")
    func roundTrip() throws {
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<2000 {
            let value = randomValue(depth: 4, &generator)
            #expect(try JSONParser.parse(value.serialized) == value)
        }
    }

    @Test("random damage to a document never traps")
    func damage() {
        var generator = SeededGenerator(seed: 11)
        let bytes = Array(#"{"v":1,"id":"abc","input":{"text":"h\u00e9llo"},"n":[1,2.5,-3e7,true,null]}"#.utf8)
        for _ in 0..<20_000 {
            var damaged = bytes
            for _ in 0...Int.random(in: 0..<3, using: &generator) {
                damaged[Int.random(in: 0..<damaged.count, using: &generator)] = UInt8.random(
                    in: 0...255, using: &generator)
            }
            _ = try? JSONParser.parse(damaged)  // Only that it returns matters.
            _ = try? JSONParser.parse(damaged, options: .lenient)
        }
    }

    private func randomValue(depth: Int, _ generator: inout SeededGenerator) -> JSONValue {
        switch Int.random(in: 0..<(depth > 0 ? 7 : 5), using: &generator) {
        case 0: return .null
        case 1: return .bool(.random(using: &generator))
        case 2: return .integer(.random(in: .min ... .max, using: &generator))
        case 3: return .number(Double.random(in: -1e6...1e6, using: &generator) + 0.123)
        case 4:
            let scalars = ["a", "\"", "\\", "\n", "\t", "\u{1}", "é", "🚋", "\u{7F}", "/", "\u{2028}"]
            return .string((0..<5).map { _ in scalars.randomElement(using: &generator) ?? "" }.joined())
        case 5:
            return .array(
                (0..<Int.random(in: 0..<4, using: &generator)).map { _ in randomValue(depth: depth - 1, &generator) })
        default:
            var object = JSONObject()
            for index in 0..<Int.random(in: 0..<4, using: &generator) {
                object["k\(index)"] = randomValue(depth: depth - 1, &generator)
            }
            return .object(object)
        }
    }
}
