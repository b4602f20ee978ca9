/// A reader of JSON5 (<https://spec.json5.org>) for files that people write.
///
/// It remembers the line of every member, so that whoever finds a value wrong can say where it stands. Refused beyond
/// the standard's grammar: doubled names, nesting beyond 32 levels, NUL, `Infinity` and `NaN`. Why it is our own: see
/// `docs/decisions.md`.
package struct JSON5Parser {
    /// What a file holds.
    package struct Document: Sendable {
        package var value: JSONValue
        /// The line of each member, counted from 1, by its place such as `pools.text.slots`.
        package var lines: [String: Int]
    }

    private static let maximumDepth = 32

    private var cursor: JSON5Cursor
    private var lines: [String: Int] = [:]
    private var depth = 0

    /// Reads one value, which must be all there is beside white space and comments.
    /// - Throws: `JSON5Error`.
    package static func parse(_ bytes: [UInt8]) throws(JSON5Error) -> Document {
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw JSON5Error(line: lineOfBrokenText(bytes), column: nil, reason: "the text is not UTF-8")
        }
        var parser = JSON5Parser(cursor: JSON5Cursor(text))
        try parser.cursor.skipSpace()
        let value = try parser.value(at: "")
        try parser.cursor.skipSpace()
        guard parser.cursor.peek == nil else { throw parser.cursor.error("something follows the value") }
        return Document(value: value, lines: parser.lines)
    }

    private init(cursor: JSON5Cursor) { self.cursor = cursor }

    private static func lineOfBrokenText(_ bytes: [UInt8]) -> Int {
        var rest = bytes[...]
        while let (_, width) = UTF8.firstScalar(of: rest) { rest = rest.dropFirst(width) }
        return 1 + bytes[..<rest.startIndex].count { $0 == UInt8(ascii: "\n") }
    }

    private mutating func value(at place: String) throws(JSON5Error) -> JSONValue {
        switch cursor.peek {
        case nil: throw cursor.error("the text ends where a value should stand")
        case "{": return .object(try object(at: place))
        case "[": return .array(try array(at: place))
        case "\"", "'": return .string(try cursor.string())
        case "+", "-", ".": return try cursor.number()
        case let digit? where ("0"..."9").contains(digit): return try cursor.number()
        default: return try word()
        }
    }

    private mutating func word() throws(JSON5Error) -> JSONValue {
        let start = cursor
        switch try? cursor.name() {  // What is no name is no word either; the error below says so.
        case "null": return .null
        case "true": return .bool(true)
        case "false": return .bool(false)
        case "Infinity", "NaN": throw start.error("a number must be finite")
        case _?: throw start.error("text must stand in quotes")
        case nil: throw start.error("no value starts with this character")
        }
    }

    private mutating func object(at place: String) throws(JSON5Error) -> JSONObject {
        try enter()
        defer { depth -= 1 }
        var object = JSONObject()
        while cursor.peek != "}" {
            let start = cursor
            let key = cursor.peek == "\"" || cursor.peek == "'" ? try cursor.string() : try cursor.name()
            let inner = place.isEmpty ? key : "\(place).\(key)"
            guard object[key] == nil else {
                let before = lines[inner].map { ", first in line \($0)" } ?? ""
                throw start.error("the name \(JSONParser.shown(key)) stands twice\(before)")
            }
            lines[inner] = start.line
            try cursor.skipSpace()
            guard cursor.take(":") else { throw cursor.error("a colon should stand here") }
            try cursor.skipSpace()
            object.append(key: key, value: try value(at: inner))
            guard try goOn() else { break }
        }
        guard cursor.take("}") else { throw cursor.error("a comma or } should stand here") }
        return object
    }

    private mutating func array(at place: String) throws(JSON5Error) -> [JSONValue] {
        try enter()
        defer { depth -= 1 }
        var elements: [JSONValue] = []
        while cursor.peek != "]" {
            elements.append(try value(at: "\(place)[\(elements.count)]"))
            guard try goOn() else { break }
        }
        guard cursor.take("]") else { throw cursor.error("a comma or ] should stand here") }
        return elements
    }

    /// Whether a comma follows; behind the last element one may stand, too.
    private mutating func goOn() throws(JSON5Error) -> Bool {
        try cursor.skipSpace()
        guard cursor.take(",") else { return false }
        try cursor.skipSpace()
        return true
    }

    private mutating func enter() throws(JSON5Error) {
        depth += 1
        guard depth <= Self.maximumDepth else {
            throw cursor.error("more than \(Self.maximumDepth) arrays and objects stand inside each other")
        }
        cursor.advance()
        try cursor.skipSpace()
    }
}

/// Where a text is no JSON5 that we accept.
package struct JSON5Error: Error, Sendable, Equatable, CustomStringConvertible {
    /// Counted from 1.
    package let line: Int
    /// Characters from 1; `nil` where the text is not even UTF-8.
    package let column: Int?
    /// What is wrong there, as a sentence's end.
    package let reason: String

    /// One line for a person.
    package var description: String { "line \(line)\(column.map { ", column \($0)" } ?? ""): \(reason)" }
}
