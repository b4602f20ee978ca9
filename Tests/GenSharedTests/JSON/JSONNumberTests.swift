import Testing

@testable import GenShared

@Suite("JSON parser: numbers", .timeLimit(.minutes(1)))
struct JSONNumberTests {
    @Test(
        "a whole number that fits 64 bits is never rounded",
        arguments: [
            ("0", 0), ("-0", 0), ("1", 1), ("-1", -1), ("9007199254740993", 9_007_199_254_740_993),
            ("9223372036854775807", Int64.max), ("-9223372036854775808", Int64.min),
        ])
    func keepsIntegers(text: String, integer: Int64) throws {
        #expect(try JSONParser.parse(text) == .integer(integer))
    }

    @Test(
        "any other number is a double",
        arguments: [
            ("0.5", 0.5), ("-0.5", -0.5), ("1.0", 1), ("1e3", 1000), ("1E+3", 1000), ("25e-1", 2.5), ("0e0", 0),
            ("0.000", 0), ("1.7976931348623157e308", Double.greatestFiniteMagnitude), ("1e-400", 0),
            ("5e-324", Double.leastNonzeroMagnitude),
        ])
    func readsDoubles(text: String, number: Double) throws {
        #expect(try JSONParser.parse(text) == .number(number))
    }

    @Test("-0.0 keeps its sign")
    func keepsNegativeZero() throws {
        let number = try #require(try JSONParser.parse("-0.0").number)
        #expect(number == 0)
        #expect(number.sign == .minus)
    }

    @Test(
        "B09: a whole number beyond 64 bits is a double and no integer",
        arguments: ["9223372036854775808", "18446744073709551616", "1" + String(repeating: "0", count: 60)])
    func roundsBeyondSixtyFourBits(text: String) throws {
        let value = try JSONParser.parse(text)
        #expect(value.number == Double(text))
        #expect(value.integer == nil)
        let negative = try JSONParser.parse("-1" + text)
        #expect(negative.integer == nil)
    }

    @Test(
        "B09: a number that fits no double is refused",
        arguments: ["1e400", "-1e400", "1e309", "1e99999999999999999999"])
    func refusesOverflow(text: String) throws {
        #expect(try #require(jsonError(text)).reason == "the number \(text) does not fit")
        #expect(jsonError("{\"a\":\(text)}", .lenient) != nil)
    }

    @Test("a number must not begin with 0", arguments: ["00", "01", "-01", "-00", "007", "00.5", "01e1"])
    func refusesLeadingZeros(text: String) throws {
        #expect(try #require(jsonError(text)).reason == "a number must not begin with 0")
    }

    @Test(
        "what only looks like a number is refused",
        arguments: [
            "-", "+1", ".5", "-.5", "1.", "-1.", "1.e1", "1e", "1e+", "1e-", "1E", "1e1.5", "1.2.3", "--1", "-+1",
            "1e+-1",
            "1_000", "1,000", "0x10", "1f", "1n", "0b1", "- 1", "1 .5", "١", "１", "²", "-NaN", "1e1e1",
        ])
    func refusesOther(text: String) {
        #expect(jsonError(text) != nil)
        #expect(jsonError("[\(text)]", .lenient) != nil)
    }

    @Test("64 characters are the most that a number may have")
    func limitsLength() {
        let digits = String(repeating: "3", count: 62)
        #expect(jsonError("0.\(digits)") == nil)
        #expect(jsonError("0.\(digits)3") != nil)
        #expect(jsonError(String(repeating: "9", count: 1_000_000)) != nil)
        #expect(jsonError("1." + String(repeating: "0", count: 1_000_000) + "1", .lenient) != nil)
    }
}
