import Glibc

/// Input that nobody meant: noise, and valid input with small faults.
package struct RandomInput {
    package var generator: SeededGenerator

    package init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    /// The seeds of a property test; `GEN_TEST_SEED=<number>` runs one alone, such as the one that a failure names.
    package static func seeds(_ count: Int) -> [UInt64] {
        if let text = getenv("GEN_TEST_SEED"), let seed = UInt64(String(cString: text)) { return [seed] }
        return (1...UInt64(max(count, 1))).map(\.self)
    }

    /// Bytes at random: half of the time any, else those that steer a parser.
    package mutating func noise(upTo limit: Int) -> [UInt8] {
        let isAny = Bool.random(using: &generator)
        return (0..<Int.random(in: 0...limit, using: &generator)).map { _ in isAny ? anyByte() : tellingByte() }
    }

    /// The bytes with one to four faults: a flipped bit, another byte, one removed or put in, a stretch that is doubled
    /// or moved, the rest cut off.
    package mutating func damaged(_ bytes: [UInt8]) -> [UInt8] {
        var bytes = bytes
        for _ in 0..<Int.random(in: 1...4, using: &generator) where !bytes.isEmpty {
            let place = Int.random(in: 0..<bytes.count, using: &generator)
            let end = Int.random(in: place...min(bytes.count, place + 40), using: &generator)
            switch Int.random(in: 0..<8, using: &generator) {
            case 0: bytes[place] = anyByte()
            case 1: bytes[place] ^= 1 << UInt8.random(in: 0...7, using: &generator)
            case 2: bytes.remove(at: place)
            case 3, 4: bytes.insert(tellingByte(), at: place)
            case 5: bytes.removeSubrange(place...)
            case 6: bytes.insert(contentsOf: Array(bytes[place..<end]), at: place)
            default:
                let stretch = Array(bytes[place..<end])
                bytes.removeSubrange(place..<end)
                bytes.insert(contentsOf: stretch, at: Int.random(in: 0...bytes.count, using: &generator))
            }
        }
        return bytes
    }

    /// One of them.
    package mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: 0..<elements.count, using: &generator)]
    }

    /// A number up to the limit.
    package mutating func number(upTo limit: Int) -> Int { Int.random(in: 0...limit, using: &generator) }

    /// The input in pieces of random size.
    package mutating func pieces(_ bytes: [UInt8], upTo limit: Int = 12) -> [[UInt8]] {
        Splits.random(of: bytes, upTo: limit, using: &generator)
    }

    private mutating func anyByte() -> UInt8 { UInt8.random(in: .min ... .max, using: &generator) }

    private mutating func tellingByte() -> UInt8 { pick(Self.telling) }

    private static let telling =
        Array("{}[]\",:\\u0d8-+.eE/@%#?=;<&*'$\n\r\t 0129abtfnx".utf8)
        + [0x00, 0x1B, 0x1F, 0x7F, 0x80, 0xBF, 0xC0, 0xC3, 0xE2, 0xED, 0xEF, 0xF0, 0xF4, 0xFF]
}
