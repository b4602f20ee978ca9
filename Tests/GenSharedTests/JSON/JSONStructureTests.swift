import Testing

@testable import GenShared

/// The error that the parser has for this text.
func jsonError(_ text: String, _ options: JSONParser.Options = .strict) -> JSONError? {
    jsonError(Array(text.utf8), options)
}

/// The error that the parser has for these bytes.
func jsonError(_ bytes: [UInt8], _ options: JSONParser.Options = .strict) -> JSONError? {
    do throws(JSONError) {
        _ = try JSONParser.parse(bytes, options: options)
        return nil
    } catch { return error }
}

@Suite("JSON parser: structure", .timeLimit(.minutes(1)))
struct JSONStructureTests {
    @Test(
        "every kind of value may stand at the top",
        arguments: [
            ("null", JSONValue.null), ("true", .bool(true)), ("false", .bool(false)), ("7", .integer(7)),
            ("7.5", .number(7.5)), (#""""#, .string("")), ("[]", .array([])), ("{}", .object([:])),
        ])
    func readsEveryKind(text: String, value: JSONValue) throws {
        #expect(try JSONParser.parse(text) == value)
        #expect(try JSONParser.parse(text, options: .lenient) == value)
    }

    @Test("members keep the order in which they were written")
    func keepsOrder() throws {
        let object = try #require(try JSONParser.parse(#"{"b":1,"a":[1,{"c":null}],"":"x"}"#).object)
        #expect(object.members.map(\.key) == ["b", "a", ""])
        #expect(object["a"] == .array([.integer(1), .object(["c": .null])]))
    }

    @Test("the four kinds of white space may stand between any two tokens, no other")
    func skipsWhiteSpace() throws {
        let text = "\t\r\n { \"a\" : [ 1 , 2 ] , \"b\"\n:\r{ } } \n"
        #expect(try JSONParser.parse(text) == .object(["a": .array([.integer(1), .integer(2)]), "b": .object([:])]))
        for space in ["\u{0B}", "\u{0C}", "\u{A0}", "\u{2028}", "\u{FEFF}"] {
            #expect(jsonError("\(space)1") != nil)
            #expect(jsonError("[1,\(space)2]") != nil)
        }
    }

    @Test(
        "what is no value is refused",
        arguments: [
            "", " ", "\n", "nul", "nulL", "True", "tru", "NaN", "Infinity", "-Infinity", "undefined", "'a'", "a", "[",
            "{", "]", "}", ",", ":", "[1", "[1,", "[1,]", "[,1]", "[1 2]", "[1:2]", "{\"a\"}", "{\"a\":}", "{\"a\":1,}",
            "{,}", "{a:1}", "{1:1}", "{null:1}", "{\"a\" 1}", "{\"a\":1 \"b\":2}", "{\"a\"=1}", "{\"a\":1]", "[1}",
            "/* */1", "// x\n1", "\u{FEFF}{}", "\0", "[1]\0",
        ])
    func refusesOther(text: String) {
        #expect(jsonError(text) != nil)
        #expect(jsonError(text, .lenient) != nil)
    }

    @Test(
        "B02: anything behind the value is refused where it stands",
        arguments: [
            ("{}x", 2), ("{} {}", 3), ("1 2", 2), ("null,", 4), ("[]]", 2), ("\"a\"\"b\"", 3), ("truefalse", 4),
        ])
    func refusesTrailingGarbage(text: String, offset: Int) {
        #expect(jsonError(text) == JSONError(offset: offset, reason: "something follows the value"))
    }

    @Test(
        "an error names the byte that does not fit",
        arguments: [
            ("", 0), ("  x", 2), ("[1,x]", 3), ("{\"a\";1}", 4), ("{\"a\":1;", 6), ("[1;", 2), ("{1}", 1), ("-", 1),
        ])
    func namesTheOffset(text: String, offset: Int) throws {
        let error = try #require(jsonError(text))
        #expect(error.offset == offset)
        #expect(error.description == "not valid JSON at byte \(offset): \(error.reason)")
    }

    // MARK: Depth

    @Test(
        "32 levels are the most in strict mode, 64 in lenient",
        arguments: [(JSONParser.Options.strict, 32), (.lenient, 64)])
    func limitsDepth(options: JSONParser.Options, most: Int) {
        func arrays(_ depth: Int) -> String {
            String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        }
        func objects(_ depth: Int) -> String {
            String(repeating: "{\"a\":", count: depth) + "1" + String(repeating: "}", count: depth)
        }
        #expect(jsonError(arrays(most), options) == nil)
        #expect(jsonError(objects(most), options) == nil)
        #expect(jsonError(arrays(most + 1), options)?.offset == most)
        #expect(jsonError(objects(most + 1), options)?.offset == most * 5)
    }

    @Test("depth counts what is open, not what has been closed")
    func countsOpenOnly() throws {
        let text = "[" + Array(repeating: "[{}]", count: 200).joined(separator: ",") + "]"
        #expect(try JSONParser.parse(text).array?.count == 200)
    }

    @Test("B05: 100,000 open brackets are refused at the limit", arguments: ["[", "{\"a\":", "[{\"\":", " [ "])
    func refusesDeepNesting(opening: String) {
        let open = String(repeating: opening, count: 100_000)
        #expect(jsonError(open) != nil)
        #expect(jsonError(open, .lenient) != nil)
        #expect(jsonError(open + "1" + String(repeating: "]", count: 100_000), .lenient) != nil)
    }

    // MARK: Duplicate names

    @Test(
        "B09: a name that stands twice is refused",
        arguments: [
            #"{"a":1,"a":1}"#, #"{"a":1,"b":2,"a":3}"#, #"{"a":1,"\u0061":2}"#, #"{"":1,"":2}"#,
            #"[{"x":{"a":1,"a":2}}]"#,
        ])
    func refusesDuplicates(text: String) throws {
        #expect(try #require(jsonError(text)).reason.hasSuffix("stands twice"))
        #expect(jsonError(text, .lenient) != nil)
    }

    @Test("a name may stand again in another object")
    func takesSameNameElsewhere() {
        #expect(jsonError(#"{"a":{"a":[{"a":1},{"a":2}]},"A":1,"a ":2}"#) == nil)
    }

    @Test(
        "a name that stands twice is found at any place of a large object", arguments: [0, 1, 14, 15, 16, 17, 18, 39])
    func refusesDuplicatesInLargeObjects(first: Int) throws {
        let names = (0..<40).map { "\"n\($0)\":0" }
        #expect(jsonError("{\(names.joined(separator: ","))}") == nil)
        for place in first + 1...40 {
            var repeated = names
            repeated.insert("\"n\(first)\":1", at: place)
            let error = try #require(jsonError("{\(repeated.joined(separator: ","))}"))
            #expect(error.reason == "the name \"n\(first)\" stands twice")
        }
    }

    @Test("an error stays one short line whatever the name holds")
    func keepsErrorsShort() throws {
        let marks = String(repeating: "\u{301}", count: 50_000)
        for name in [#"a\nb\u001b[2J"#, "e\(marks)", String(repeating: "x", count: 5000)] {
            let error = try #require(jsonError("{\"\(name)\":1,\"\(name)\":2}"))
            #expect(error.description.utf8.count < 400)
            #expect(error.description.unicodeScalars.allSatisfy { $0.value >= 0x20 })
        }
    }

    @Test("50,000 members are read without comparing each with each")
    func readsManyMembers() throws {
        let text = "{" + (0..<50_000).map { "\"\($0)\":0" }.joined(separator: ",") + "}"
        #expect(try JSONParser.parse(text).object?.members.count == 50_000)
    }
}
