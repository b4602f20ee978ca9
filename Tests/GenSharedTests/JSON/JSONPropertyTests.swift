import GenTestSupport
import Testing

@testable import GenShared

@Suite("JSON: properties", .timeLimit(.minutes(1)))
struct JSONPropertyTests {
    @Test("what is written is read back unchanged", arguments: 1...8)
    func roundTrips(seed: UInt64) throws {
        var random = RandomJSON(seed: seed)
        for _ in 0..<200 {
            let value = random.value()
            let text = value.serialized
            let read = try JSONParser.parse(text)
            #expect(read == value)
            // Byte for byte, because == on strings takes equivalent spellings for the same.
            #expect(Array(read.serialized.utf8) == Array(text.utf8))
            #expect(try JSONParser.parse(text, options: .lenient) == value)
        }
    }

    @Test("every prefix of a document is refused", arguments: 1...4)
    func refusesPrefixes(seed: UInt64) {
        var random = RandomJSON(seed: 100 + seed)
        for _ in 0..<20 {
            let bytes = Array(JSONValue.array([random.value(depth: 3), random.value(depth: 3)]).serialized.utf8)
            for end in 0..<min(bytes.count, 600) {
                #expect(jsonError(Array(bytes[..<end])) != nil)
                #expect(jsonError(Array(bytes[..<end]), .lenient) != nil)
            }
        }
    }

    @Test("damage never traps, and what is still taken is stable", arguments: 1...8)
    func survivesDamage(seed: UInt64) throws {
        var random = RandomJSON(seed: 200 + seed)
        for _ in 0..<50 {
            let bytes = Array(random.value().serialized.utf8)
            for _ in 0..<10 {
                let damaged = random.damaged(bytes)
                let strict = try? JSONParser.parse(damaged)  // Whether it is refused is not the question here.
                let lenient = try? JSONParser.parse(damaged, options: .lenient)
                if let strict { #expect(lenient == strict) }
                if let lenient {
                    #expect(
                        try JSONParser.parse(lenient.serialized, options: .lenient).serialized == lenient.serialized)
                }
            }
        }
    }

    @Test("an error's offset lies within the text", arguments: 1...4)
    func pointsIntoTheText(seed: UInt64) {
        var random = RandomJSON(seed: 300 + seed)
        for _ in 0..<300 {
            let damaged = random.damaged(Array(random.value().serialized.utf8))
            if let error = jsonError(damaged) { #expect((0...damaged.count).contains(error.offset)) }
        }
    }

    @Test("noise is refused or read, never a trap", arguments: 1...4)
    func survivesNoise(seed: UInt64) {
        var generator = SeededGenerator(seed: 400 + seed)
        let alphabet = Array("[]{}\",:\\u0123eE+-.truefalsn \n".utf8) + [0x00, 0x80, 0xC3, 0xFF]
        for _ in 0..<1000 {
            let count = Int.random(in: 0...40, using: &generator)
            let bytes = (0..<count).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &generator)] }
            if jsonError(bytes) == nil { #expect(jsonError(bytes, .lenient) == nil) }
        }
    }
}
