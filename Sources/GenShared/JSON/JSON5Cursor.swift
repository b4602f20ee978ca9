/// A place in a JSON5 text, and the readers of what has no inner structure: space, names, strings, numbers.
struct JSON5Cursor {
    private let scalars: [Unicode.Scalar]
    private var position = 0
    private(set) var line = 1
    private var lineStart = 0

    init(_ text: String) { scalars = Array(text.unicodeScalars) }

    var peek: Unicode.Scalar? { position < scalars.count ? scalars[position] : nil }

    private var next: Unicode.Scalar? { position + 1 < scalars.count ? scalars[position + 1] : nil }

    func error(_ reason: String) -> JSON5Error {
        JSON5Error(line: line, column: position - lineStart + 1, reason: reason)
    }

    mutating func advance() {
        guard let scalar = peek else { return }
        position += 1
        // CRLF counts once, with its LF.
        guard scalar == "\n" || scalar == "\u{2028}" || scalar == "\u{2029}" || (scalar == "\r" && peek != "\n") else {
            return
        }
        line += 1
        lineStart = position
    }

    mutating func take(_ scalar: Unicode.Scalar) -> Bool {
        guard peek == scalar else { return false }
        advance()
        return true
    }

    mutating func skipSpace() throws(JSON5Error) {
        while let scalar = peek {
            if scalar == "/" {
                try skipComment()
            } else if Self.isSpace(scalar) {
                advance()
            } else {
                return
            }
        }
    }

    private mutating func skipComment() throws(JSON5Error) {
        let start = self
        advance()
        if take("/") {
            while let scalar = peek, !Self.isLineEnd(scalar) { advance() }
        } else if take("*") {
            while !(peek == "*" && next == "/") {
                guard peek != nil else { throw start.error("a comment has no end") }
                advance()
            }
            advance()
            advance()
        } else {
            throw start.error("a comment begins with // or /*")
        }
    }

    // MARK: Names and strings

    /// A name without quotes, as ECMAScript 5.1 has them.
    mutating func name() throws(JSON5Error) -> String {
        var name = String.UnicodeScalarView()
        while let scalar = peek {
            let start = self
            var read = scalar
            if scalar == "\\" {
                advance()
                guard take("u") else { throw start.error("only \\u may stand in a name") }
                read = try unicodeEscape()
            } else if name.isEmpty ? Self.startsName(scalar) : Self.continuesName(scalar) {
                advance()
            } else {
                break
            }
            guard name.isEmpty ? Self.startsName(read) : Self.continuesName(read) else {
                throw start.error("this character needs a name in quotes")
            }
            name.append(read)
        }
        guard !name.isEmpty else { throw error("a name should stand here") }
        return String(name)
    }

    mutating func string() throws(JSON5Error) -> String {
        let start = self
        guard let quote = peek else { throw error("a string should stand here") }
        advance()
        var text = String.UnicodeScalarView()
        while let scalar = peek {
            if scalar == quote {
                advance()
                return String(text)
            }
            guard scalar != "\n", scalar != "\r" else { throw error("a line ends within a string; write \\n") }
            guard scalar != "\0" else { throw error("a string must not hold NUL") }
            if scalar == "\\" {
                if let escaped = try escape() { text.append(escaped) }
            } else {
                text.append(scalar)
                advance()
            }
        }
        throw start.error("a string has no end")
    }

    /// - Returns: `nil` for a line that goes on.
    private mutating func escape() throws(JSON5Error) -> Unicode.Scalar? {
        let start = self
        advance()
        guard let letter = peek else { throw start.error("a string has no end") }
        advance()
        switch letter {
        case "b": return "\u{8}"
        case "f": return "\u{C}"
        case "n": return "\n"
        case "r": return "\r"
        case "t": return "\t"
        case "v": return "\u{B}"
        case "x":
            guard let scalar = Unicode.Scalar(try hexadecimal(2)), scalar != "\0" else {
                throw start.error("a string must not hold NUL")
            }
            return scalar
        case "u": return try unicodeEscape()
        case "0"..."9": throw start.error("no escape begins with a digit, and a string must not hold NUL")
        case "\r":
            if peek == "\n" { advance() }
            return nil
        case "\n", "\u{2028}", "\u{2029}": return nil
        default: return letter
        }
    }

    /// The four digits behind `\u`, and those of the other half of a surrogate pair.
    private mutating func unicodeEscape() throws(JSON5Error) -> Unicode.Scalar {
        let start = self
        let first = try hexadecimal(4)
        guard first != 0 else { throw start.error("a string must not hold NUL") }
        if let scalar = Unicode.Scalar(first) { return scalar }
        if first < 0xDC00, take("\\"), take("u") {
            let second = try hexadecimal(4)
            if (0xDC00...0xDFFF).contains(second),
                let scalar = Unicode.Scalar(0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00))
            {
                return scalar
            }
        }
        throw start.error("half of a surrogate pair stands alone")
    }

    private mutating func hexadecimal(_ count: Int) throws(JSON5Error) -> UInt32 {
        var value: UInt32 = 0
        for _ in 0..<count {
            guard let scalar = peek, scalar.isASCII, let digit = Character(scalar).hexDigitValue else {
                throw error("\(count) hexadecimal digits should stand here")
            }
            value = value << 4 | UInt32(digit)
            advance()
        }
        return value
    }

    // MARK: Numbers

    mutating func number() throws(JSON5Error) -> JSONValue {
        let start = self
        let isNegative = peek == "-"
        if peek == "-" || peek == "+" { advance() }
        let value =
            peek == "0" && (next == "x" || next == "X") ? try hexadecimalNumber(start) : try decimalNumber(start)
        if let scalar = peek, Self.continuesName(scalar) || scalar == "." || scalar == "\\" {
            throw start.error("this is no number")
        }
        switch value {
        case .integer(let integer): return .integer(isNegative ? -integer : integer)
        case .number(let number): return .number(isNegative ? -number : number)
        default: return value
        }
    }

    private mutating func hexadecimalNumber(_ start: JSON5Cursor) throws(JSON5Error) -> JSONValue {
        advance()
        advance()
        var digits = ""
        while let scalar = peek, scalar.isASCII, Character(scalar).isHexDigit {
            digits.unicodeScalars.append(scalar)
            advance()
        }
        guard !digits.isEmpty else { throw error("a hexadecimal digit should stand here") }
        guard digits.utf8.count <= 64, let value = Int64(digits, radix: 16) else {
            throw start.error("the number does not fit")
        }
        return .integer(value)
    }

    private mutating func decimalNumber(_ start: JSON5Cursor) throws(JSON5Error) -> JSONValue {
        // What is left out before or behind the point is 0 for the reader below.
        var text = takeDigits()
        let whole = text
        var isWhole = true
        if take(".") {
            isWhole = false
            let fraction = takeDigits()
            guard !whole.isEmpty || !fraction.isEmpty else { throw start.error("this is no number") }
            text = "\(whole.isEmpty ? "0" : whole).\(fraction.isEmpty ? "0" : fraction)"
        }
        guard !text.isEmpty else {
            let word = try? name()  // Only to tell an infinite number from a lone sign.
            throw start.error(word == "Infinity" || word == "NaN" ? "a number must be finite" : "this is no number")
        }
        guard whole.count <= 1 || whole.first != "0" else { throw start.error("a number must not begin with 0") }
        if peek == "e" || peek == "E" {
            isWhole = false
            advance()
            var exponent = "e"
            if peek == "-" { exponent += "-" }
            if peek == "-" || peek == "+" { advance() }
            let digits = takeDigits()
            guard !digits.isEmpty else { throw error("a digit should stand here") }
            text += exponent + digits
        }
        guard text.utf8.count <= 64 else { throw start.error("a number has more than 64 characters") }
        if isWhole, let integer = Int64(text) { return .integer(integer) }
        guard let number = Double(text), number.isFinite else { throw start.error("the number does not fit") }
        return .number(number)
    }

    private mutating func takeDigits() -> String {
        var digits = ""
        while let scalar = peek, ("0"..."9").contains(scalar) {
            digits.unicodeScalars.append(scalar)
            advance()
        }
        return digits
    }

    // MARK: Classes of characters

    private static func isLineEnd(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "\n" || scalar == "\r" || scalar == "\u{2028}" || scalar == "\u{2029}"
    }

    private static func isSpace(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar {
        case "\t", "\u{B}", "\u{C}", " ", "\u{A0}", "\u{FEFF}": true
        default: isLineEnd(scalar) || scalar.properties.generalCategory == .spaceSeparator
        }
    }

    private static func startsName(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .uppercaseLetter, .lowercaseLetter, .titlecaseLetter, .modifierLetter, .otherLetter, .letterNumber: true
        default: scalar == "$" || scalar == "_"
        }
    }

    private static func continuesName(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .nonspacingMark, .spacingMark, .decimalNumber, .connectorPunctuation: true
        default: startsName(scalar) || scalar == "\u{200C}" || scalar == "\u{200D}"
        }
    }
}
