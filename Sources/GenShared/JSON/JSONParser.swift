/// A strict reader of JSON (RFC 8259) for bytes that strangers wrote.
///
/// Beyond the standard's grammar it refuses what has surprised other systems: duplicate names, nesting beyond a
/// limit, numbers that do not fit, lone surrogates and NUL in strings, and anything after the value. It never traps.
/// Why it is our own: see `docs/decisions.md`.
public struct JSONParser {
    /// What is accepted.
    public struct Options: Sendable {
        /// How many arrays and objects may stand inside each other.
        public var maximumDepth: Int
        /// What becomes of broken text: a lone surrogate, NUL, bytes that are not UTF-8.
        package var brokenText: BrokenText

        package enum BrokenText: Sendable {
            case refused
            /// U+FFFD stands in its place.
            case repaired
            /// As `CarriedBytes`, for those who join it with what comes next; NUL is repaired.
            case carried
        }

        /// For messages from outside: depth 32 (the limit of the job contract), nothing repaired.
        public static let strict = Options(maximumDepth: 32, brokenText: .refused)
        /// For replies of backends, whose text must reach the user even if a piece of it is broken.
        public static let lenient = Options(maximumDepth: 64, brokenText: .repaired)
        /// For streams, where a character may be cut between two pieces.
        package static let pieces = Options(maximumDepth: 64, brokenText: .carried)
    }

    private let bytes: UnsafeBufferPointer<UInt8>
    private let options: Options
    private var position = 0
    private var depth = 0

    private init(_ bytes: UnsafeBufferPointer<UInt8>, _ options: Options) {
        self.bytes = bytes
        self.options = options
    }

    /// Reads one value, which must be all there is beside white space.
    /// - Throws: `JSONError` with the offset of the first byte that does not fit.
    public static func parse(_ bytes: [UInt8], options: Options = .strict) throws(JSONError) -> JSONValue {
        // withUnsafeBufferPointer rethrows untyped; the result carries the typed error over the boundary.
        let result: Result<JSONValue, JSONError> = bytes.withUnsafeBufferPointer { buffer in
            var parser = JSONParser(buffer, options)
            do throws(JSONError) { return .success(try parser.document()) } catch { return .failure(error) }
        }
        return try result.get()
    }

    /// Reads one value out of text.
    /// - Throws: `JSONError` with the offset of the first byte that does not fit.
    public static func parse(_ text: String, options: Options = .strict) throws(JSONError) -> JSONValue {
        try parse(Array(text.utf8), options: options)
    }

    private mutating func document() throws(JSONError) -> JSONValue {
        skipSpace()
        let value = try value()
        skipSpace()
        guard position == bytes.count else { throw error("something follows the value") }
        return value
    }

    private mutating func value() throws(JSONError) -> JSONValue {
        guard position < bytes.count else { throw error("the text ends where a value should stand") }
        switch bytes[position] {
        case UInt8(ascii: "{"): return .object(try object())
        case UInt8(ascii: "["): return .array(try array())
        case UInt8(ascii: "\""): return .string(try string())
        case UInt8(ascii: "t"): return try literal("true", .bool(true))
        case UInt8(ascii: "f"): return try literal("false", .bool(false))
        case UInt8(ascii: "n"): return try literal("null", .null)
        case UInt8(ascii: "-"), UInt8(ascii: "0")...UInt8(ascii: "9"): return try number()
        default: throw error("no JSON value starts with this character")
        }
    }

    private mutating func object() throws(JSONError) -> JSONObject {
        try enter()
        defer { depth -= 1 }
        var object = JSONObject()
        var names = Set<String>()
        if take(UInt8(ascii: "}")) { return object }
        repeat {
            skipSpace()
            guard peek() == UInt8(ascii: "\"") else { throw error("a name in double quotes should stand here") }
            let key = try string()
            // Only large objects pay for a set; in a small one the linear look-up is cheaper.
            let isDuplicate =
                if object.members.count < 16 { object[key] != nil } else {
                    names.contains(key) || object.members.prefix(16).contains { $0.key == key }
                }
            guard !isDuplicate else { throw error("the name \(Self.shown(key)) stands twice") }
            if object.members.count >= 16 { names.insert(key) }
            skipSpace()
            guard take(UInt8(ascii: ":")) else { throw error("a colon should stand here") }
            skipSpace()
            object.append(key: key, value: try value())
            skipSpace()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "}")) else { throw error("a comma or } should stand here") }
        return object
    }

    private mutating func array() throws(JSONError) -> [JSONValue] {
        try enter()
        defer { depth -= 1 }
        var elements: [JSONValue] = []
        if take(UInt8(ascii: "]")) { return elements }
        repeat {
            skipSpace()
            elements.append(try value())
            skipSpace()
        } while take(UInt8(ascii: ","))
        guard take(UInt8(ascii: "]")) else { throw error("a comma or ] should stand here") }
        return elements
    }

    private mutating func enter() throws(JSONError) {
        depth += 1
        guard depth <= options.maximumDepth else {
            throw error("more than \(options.maximumDepth) arrays and objects stand inside each other")
        }
        position += 1
        skipSpace()
    }

    private mutating func literal(_ text: StaticString, _ value: JSONValue) throws(JSONError) -> JSONValue {
        let end = position + text.utf8CodeUnitCount
        guard end <= bytes.count,
            UnsafeBufferPointer(start: text.utf8Start, count: text.utf8CodeUnitCount)
                .elementsEqual(bytes[position..<end])
        else { throw error("no JSON value starts like this") }
        position = end
        return value
    }

    private mutating func number() throws(JSONError) -> JSONValue {
        let start = position
        let isNegative = take(UInt8(ascii: "-"))
        guard let first = peek(), isDigit(first) else { throw error("a digit should stand here") }
        skipDigits()
        if first == UInt8(ascii: "0"), position - start > (isNegative ? 2 : 1) {
            throw error("a number must not begin with 0")
        }
        var isWhole = true
        if take(UInt8(ascii: ".")) {
            isWhole = false
            guard let digit = peek(), isDigit(digit) else { throw error("a digit should stand here") }
            skipDigits()
        }
        if take(UInt8(ascii: "e")) || take(UInt8(ascii: "E")) {
            isWhole = false
            if !take(UInt8(ascii: "+")) { _ = take(UInt8(ascii: "-")) }
            guard let digit = peek(), isDigit(digit) else { throw error("a digit should stand here") }
            skipDigits()
        }
        guard position - start <= 64 else { throw error("a number has more than 64 characters") }
        let text = String(decoding: bytes[start..<position], as: UTF8.self)
        if isWhole, let integer = Int64(text) { return .integer(integer) }
        guard let number = Double(text), number.isFinite else { throw error("the number \(text) does not fit") }
        return .number(number)
    }

    private mutating func string() throws(JSONError) -> String {
        position += 1
        let start = position
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                defer { position += 1 }
                return try text(bytes[start..<position])
            case UInt8(ascii: "\\"):
                return try escapedString(from: start)
            case 0..<0x20:
                throw error("a control character must be escaped")
            default:
                position += 1
            }
        }
        throw error("a string has no end")
    }

    /// The slow path: collects into a buffer from the first escape on.
    private mutating func escapedString(from start: Int) throws(JSONError) -> String {
        var collected = Array(bytes[start..<position])
        while position < bytes.count {
            switch bytes[position] {
            case UInt8(ascii: "\""):
                position += 1
                return try text(collected)
            case UInt8(ascii: "\\"):
                position += 1
                try escape(into: &collected)
            case 0..<0x20:
                throw error("a control character must be escaped")
            case let byte:
                collected.append(byte)
                position += 1
            }
        }
        throw error("a string has no end")
    }

    private mutating func escape(into collected: inout [UInt8]) throws(JSONError) {
        guard position < bytes.count else { throw error("a string has no end") }
        let character = bytes[position]
        position += 1
        switch character {
        case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): collected.append(character)
        case UInt8(ascii: "b"): collected.append(0x08)
        case UInt8(ascii: "f"): collected.append(0x0C)
        case UInt8(ascii: "n"): collected.append(0x0A)
        case UInt8(ascii: "r"): collected.append(0x0D)
        case UInt8(ascii: "t"): collected.append(0x09)
        case UInt8(ascii: "u"): try unicodeEscape(into: &collected)
        default: throw error("no escape has this letter")
        }
    }

    private mutating func unicodeEscape(into collected: inout [UInt8]) throws(JSONError) {
        let first = try hexadecimal()
        if first == 0 {
            guard options.brokenText != .refused else { throw error("a string must not hold NUL") }
            return collected.append(contentsOf: "\u{FFFD}".utf8)
        }
        if let scalar = Unicode.Scalar(first) { return collected.append(contentsOf: String(scalar).utf8) }
        // A surrogate: the other half must follow at once.
        if first < 0xDC00, position + 1 < bytes.count, bytes[position] == UInt8(ascii: "\\"),
            bytes[position + 1] == UInt8(ascii: "u")
        {
            let mark = position
            position += 2
            let second = try hexadecimal()
            if (0xDC00...0xDFFF).contains(second) {
                let value = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
                if let scalar = Unicode.Scalar(value) { return collected.append(contentsOf: String(scalar).utf8) }
            }
            position = mark
        }
        switch options.brokenText {
        case .refused: throw error("half of a surrogate pair stands alone")
        case .repaired: collected.append(contentsOf: "\u{FFFD}".utf8)
        case .carried:
            // The three bytes that UTF-8 would give it.
            collected += [0xE0 | UInt8(first >> 12), 0x80 | UInt8(first >> 6 & 0x3F), 0x80 | UInt8(first & 0x3F)]
        }
    }

    private mutating func hexadecimal() throws(JSONError) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<4 {
            guard position < bytes.count, let digit = Character(Unicode.Scalar(bytes[position])).hexDigitValue,
                bytes[position] < 0x80
            else { throw error("four hexadecimal digits should stand here") }
            value = value << 4 | UInt32(digit)
            position += 1
        }
        return value
    }

    private func text(_ slice: some Collection<UInt8>) throws(JSONError) -> String {
        if options.brokenText == .carried { return CarriedBytes.text(slice) }
        if let text = String(validating: slice, as: UTF8.self) { return text }
        guard options.brokenText == .repaired else { throw error("a string is not valid UTF-8") }
        return String(decoding: slice, as: UTF8.self)
    }

    // MARK: Scanning

    private func peek() -> UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func take(_ byte: UInt8) -> Bool {
        guard position < bytes.count, bytes[position] == byte else { return false }
        position += 1
        return true
    }

    private mutating func skipSpace() {
        while position < bytes.count {
            switch bytes[position] {
            case 0x20, 0x0A, 0x0D, 0x09: position += 1
            default: return
            }
        }
    }

    private mutating func skipDigits() {
        while position < bytes.count, isDigit(bytes[position]) { position += 1 }
    }

    private func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

    private func error(_ reason: String) -> JSONError { JSONError(offset: position, reason: reason) }

    /// A stranger's name for an error message: escaped, and cut by scalars, since one character may have any length.
    static func shown(_ name: String) -> String {
        JSONValue.string(String(String.UnicodeScalarView(name.unicodeScalars.prefix(40)))).serialized
    }
}
