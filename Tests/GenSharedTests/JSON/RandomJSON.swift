import GenTestSupport

@testable import GenShared

/// Makes values and damage for the property tests.
struct RandomJSON {
    private var generator: SeededGenerator

    init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    /// A value that the strict parser must take: no NUL, no number that is written like an integer but is none.
    mutating func value(depth: Int = 5) -> JSONValue {
        switch Int.random(in: 0..<(depth > 0 ? 9 : 6), using: &generator) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &generator))
        case 2:
            return .integer(Int64(truncatingIfNeeded: generator.next()) >> Int64.random(in: 0...63, using: &generator))
        case 3: return .number(fraction())
        case 4, 5: return .string(text())
        case 6: return .array((0..<Int.random(in: 0...6, using: &generator)).map { _ in value(depth: depth - 1) })
        default: return .object(object(depth: depth - 1))
        }
    }

    /// The bytes with one to four small faults.
    mutating func damaged(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...4, using: &generator) where !bytes.isEmpty {
            let place = Int.random(in: 0..<bytes.count, using: &generator)
            switch Int.random(in: 0..<6, using: &generator) {
            case 0: bytes[place] = UInt8.random(in: .min ... .max, using: &generator)
            case 1: bytes[place] ^= 1 << UInt8.random(in: 0...7, using: &generator)
            case 2: bytes.remove(at: place)
            case 3: bytes.insert(Self.telling[Int.random(in: 0..<Self.telling.count, using: &generator)], at: place)
            case 4: bytes.removeLast(bytes.count - place)
            default:
                let end = Int.random(in: place...min(bytes.count, place + 40), using: &generator)
                bytes.insert(contentsOf: Array(bytes[place..<end]), at: place)
            }
        }
        return bytes
    }

    private mutating func object(depth: Int) -> JSONObject {
        var object = JSONObject()
        // Some have more members than the parser looks through one by one.
        let count = Int.random(in: 0..<8, using: &generator) == 0 ? 30 : Int.random(in: 0...6, using: &generator)
        for index in 0..<count { object["\(text())#\(index)"] = value(depth: depth - 1) }
        return object
    }

    private mutating func fraction() -> Double {
        let number = Double(bitPattern: generator.next())
        return number.isFinite && Int64(exactly: number) == nil ? number : 0.1
    }

    private mutating func text() -> String {
        var text = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 0...12, using: &generator) {
            let bound: UInt32 = [0x80, 0x80, 0x800, 0x1_0000, 0x11_0000].randomElement(using: &generator) ?? 0x80
            let scalar = Unicode.Scalar(UInt32.random(in: 1..<bound, using: &generator)) ?? "\u{FFFD}"
            text.append(scalar)
        }
        return String(text)
    }

    /// The bytes that steer a parser.
    private static let telling =
        Array("{}[]\",:\\u0d8-+.eE\n\t ".utf8) + [0x00, 0x1F, 0x7F, 0x80, 0xC0, 0xED, 0xF4, 0xFF]
}
