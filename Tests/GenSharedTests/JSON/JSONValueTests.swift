import Testing

@testable import GenShared

@Suite("JSON value", .timeLimit(.minutes(1)))
struct JSONValueTests {
    private static let everyKind: [JSONValue] = [
        .null, .bool(true), .integer(3), .number(3.5), .string("s"), .array([.null]), .object(["a": .null]),
    ]

    @Test("a value is read only as what it is", arguments: everyKind)
    func readsOnlyItsKind(value: JSONValue) {
        #expect((value.bool != nil) == (value == .bool(true)))
        #expect((value.string != nil) == (value == .string("s")))
        #expect((value.array != nil) == (value == .array([.null])))
        #expect((value.object != nil) == (value == .object(["a": .null])))
        #expect((value.integer != nil) == (value == .integer(3)))
        #expect((value.number != nil) == (value == .integer(3) || value == .number(3.5)))
        #expect((value["a"] != nil) == (value == .object(["a": .null])))
    }

    @Test("a kind has a name for error messages")
    func namesKinds() {
        let names = ["null", "a boolean", "a number", "a number", "a string", "an array", "an object"]
        #expect(Self.everyKind.map(\.kindName) == names)
    }

    @Test(
        "a double counts as an integer only if it is one and fits",
        arguments: [
            (3, 3), (-0.0, 0), (3.5, nil), (9_223_372_036_854_775_808, nil), (-9_223_372_036_854_775_808, Int64.min),
            (1e300, nil), (Double.nan, nil), (Double.infinity, nil), (-Double.infinity, nil),
        ] as [(Double, Int64?)])
    func convertsExactly(number: Double, integer: Int64?) {
        #expect(JSONValue.number(number).integer == integer)
    }

    @Test("setting a member replaces, appends or removes it")
    func editsMembers() {
        var object: JSONObject = ["a": .integer(1), "b": .integer(2), "a": .integer(3)]
        #expect(object.members.map(\.key) == ["a", "b"])
        #expect(object["a"] == .integer(3))
        object["b"] = .null
        object["c"] = .bool(false)
        #expect(object.members.map(\.key) == ["a", "b", "c"])
        #expect(object["b"] == .null)
        object["a"] = nil
        object["missing"] = nil
        #expect(object.members.map(\.key) == ["b", "c"])
        #expect(JSONObject().members.isEmpty)
    }

    @Test("objects are equal if they have the same members in the same order")
    func comparesObjects() {
        #expect(JSONValue.object(["a": .null, "b": .null]) == .object(["a": .null, "b": .null]))
        #expect(JSONValue.object(["a": .null]) != .object(["a": .bool(false)]))
        #expect(JSONValue.object(["a": .null, "b": .null]) != .object(["b": .null, "a": .null]))
    }
}
