import GenShared

/// Joins the pieces of a text whose characters may be cut between two of them.
///
/// Servers that stream a model's bytes, or that count in UTF-16, send one half of a character with one piece and the
/// other with the next. What is incomplete is held back until the next piece; what can never become a character is
/// U+FFFD. Pieces come as the parser reads them with `JSONParser.Options.pieces`.
struct TextJoiner {
    /// The begin of a character: at most half of a surrogate pair and two bytes of the other.
    private var held: [UInt8] = []
    /// Whether something could not be read as text.
    private(set) var hasReplaced = false

    /// The whole characters that this piece completes.
    mutating func feed(_ piece: String) -> String {
        guard !held.isEmpty || CarriedBytes.areIn(piece) else { return piece }
        var rest = (held + CarriedBytes.bytes(of: piece))[...]
        held = []
        var text = String.UnicodeScalarView()
        while !rest.isEmpty {
            if let (scalar, width) = UTF8.firstScalar(of: rest) ?? Self.pair(rest) {
                text.append(scalar)
                rest = rest.dropFirst(width)
            } else if Self.mayGoOn(rest) {
                held = Array(rest)
                break
            } else {
                replace(&text)
                rest = rest.dropFirst(Self.brokenWidth(rest))
            }
        }
        return String(text)
    }

    /// What is left when nothing follows.
    mutating func finish() -> String {
        guard !held.isEmpty else { return "" }
        held = []
        var text = String.UnicodeScalarView()
        replace(&text)
        return String(text)
    }

    private mutating func replace(_ text: inout String.UnicodeScalarView) {
        hasReplaced = true
        text.append("\u{FFFD}")
    }

    /// Both halves of a surrogate pair, each as three bytes.
    private static func pair(_ bytes: ArraySlice<UInt8>) -> (scalar: Unicode.Scalar, width: Int)? {
        guard let high = half(bytes, 0xA0...0xAF), let low = half(bytes.dropFirst(3), 0xB0...0xBF),
            let scalar = Unicode.Scalar(0x10000 + (high << 10) + low)
        else { return nil }
        return (scalar, 6)
    }

    /// The ten bits of a half, with the second byte telling which half it is.
    private static func half(_ bytes: ArraySlice<UInt8>, _ second: ClosedRange<UInt8>) -> UInt32? {
        let three = Array(bytes.prefix(3))
        guard three.count == 3, three[0] == 0xED, second.contains(three[1]), (0x80...0xBF).contains(three[2]) else {
            return nil
        }
        return UInt32(three[1] & 0x0F) << 6 | UInt32(three[2] & 0x3F)
    }

    /// Whether more bytes could make a character of these.
    private static func mayGoOn(_ bytes: ArraySlice<UInt8>) -> Bool {
        let bytes = Array(bytes.prefix(6))
        // Half a pair, alone or with the begin of the other.
        if half(bytes[...], 0xA0...0xAF) != nil {
            let after = Array(bytes.dropFirst(3))
            return after.count < 3 && (after.first ?? 0xED) == 0xED
                && (after.count < 2 || (0xB0...0xBF).contains(after[1]))
        }
        return bytes.count < width(bytes[0]) && zip(bytes.dropFirst(), allowed(bytes[0])).allSatisfy { $1.contains($0) }
    }

    /// Bytes that one U+FFFD stands for: a whole half of a pair, else one.
    private static func brokenWidth(_ bytes: ArraySlice<UInt8>) -> Int { half(bytes, 0xA0...0xBF) == nil ? 1 : 3 }

    /// How many bytes a character has that begins with this one; 0 for none.
    private static func width(_ first: UInt8) -> Int {
        switch first {
        case 0xC2...0xDF: 2
        case 0xE0...0xEF: 3
        case 0xF0...0xF4: 4
        default: 0
        }
    }

    /// The bytes that may follow the first (Unicode 15, table 3-7, and the halves of pairs beside it).
    private static func allowed(_ first: UInt8) -> [ClosedRange<UInt8>] {
        let any: ClosedRange<UInt8> = 0x80...0xBF
        switch first {
        case 0xE0: return [0xA0...0xBF, any]
        case 0xF0: return [0x90...0xBF, any, any]
        case 0xF4: return [0x80...0x8F, any, any]
        default: return [any, any, any]
        }
    }
}
