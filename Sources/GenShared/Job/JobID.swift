/// The name of a job: what its keys, its channel and its message carry.
///
/// Our own ids are ULIDs in lower-case Crockford base 32 (26 characters, sorting by time). A foreign id is accepted
/// if it matches `^[A-Za-z0-9_-]{1,64}$`; nothing else ever becomes part of a key, a path or a channel.
public struct JobID: Hashable, Sendable, CustomStringConvertible {
    /// The id as it is written everywhere.
    public let rawValue: String

    /// Takes an id from outside.
    /// - Returns: `nil` unless it has 1 to 64 letters, digits, `_` or `-` of ASCII.
    public init?(_ text: String) {
        let utf8 = text.utf8
        guard (1...64).contains(utf8.count), utf8.allSatisfy(Self.isAllowed) else { return nil }
        rawValue = text
    }

    /// Makes a new id.
    /// - Parameters:
    ///   - milliseconds: Unix time; only its lower 48 bits are used.
    ///   - generator: where the other 80 bits come from.
    public init(atMilliseconds milliseconds: Int64, using generator: inout some RandomNumberGenerator) {
        let time = UInt64(bitPattern: milliseconds) & 0xFFFF_FFFF_FFFF
        let high = UInt64(generator.next(upperBound: UInt64(1) << 40))
        let low = UInt64(generator.next(upperBound: UInt64(1) << 40))
        rawValue =
            Self.encode(time, characters: 10) + Self.encode(high, characters: 8) + Self.encode(low, characters: 8)
    }

    /// Makes a new id with the system's random numbers.
    public init(atMilliseconds milliseconds: Int64) {
        var generator = SystemRandomNumberGenerator()
        self.init(atMilliseconds: milliseconds, using: &generator)
    }

    /// The id.
    public var description: String { rawValue }

    private static func isAllowed(_ byte: UInt8) -> Bool {
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
            UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
            true
        default: false
        }
    }

    private static func encode(_ value: UInt64, characters: Int) -> String {
        let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)
        let digits = (0..<characters).reversed().map { alphabet[Int((value >> (UInt64($0) * 5)) & 31)] }
        return String(decoding: digits, as: UTF8.self)
    }
}
