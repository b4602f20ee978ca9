/// Bytes that are no text by themselves, carried inside a string.
///
/// A string holds whole characters only, but a backend may cut one between two pieces of its answer: bytes of UTF-8, or
/// the halves of a surrogate pair, which stand here as the three bytes that WTF-8 gives them. Each such byte travels as
/// one of the last 256 scalars of plane 16. Where text really has one of those scalars, its own four bytes travel in its
/// place, so that nothing is taken for what it is not.
package enum CarriedBytes {
    private static let first: UInt32 = 0x10_FF00

    /// Whether the text carries bytes.
    package static func areIn(_ text: String) -> Bool {
        // Every carrier begins with F4 8F BC or F4 8F BD, so most texts are told by one search.
        text.utf8.contains(0xF4) && text.unicodeScalars.contains { $0.value >= first }
    }

    /// The text of some bytes, with those that do not fit carried.
    static func text(_ bytes: some Collection<UInt8>) -> String {
        if let text = String(validating: bytes, as: UTF8.self), !areIn(text) { return text }
        var scalars = String.UnicodeScalarView()
        var rest = Array(bytes)[...]
        while let byte = rest.first {
            if let (scalar, width) = UTF8.firstScalar(of: rest), scalar.value < first {
                scalars.append(scalar)
                rest = rest.dropFirst(width)
            } else {
                scalars.append(carrier(of: byte))
                rest = rest.dropFirst()
            }
        }
        return String(scalars)
    }

    /// The bytes of a text, with those that it carries as they were.
    package static func bytes(of text: String) -> [UInt8] {
        guard areIn(text) else { return Array(text.utf8) }
        var bytes: [UInt8] = []
        for scalar in text.unicodeScalars {
            if scalar.value >= first {
                bytes.append(UInt8(truncatingIfNeeded: scalar.value))
            } else {
                bytes.append(contentsOf: String(scalar).utf8)
            }
        }
        return bytes
    }

    /// The text with U+FFFD for what it carries, for those who will not see the rest of it.
    package static func repaired(_ text: String) -> String {
        areIn(text) ? String(decoding: bytes(of: text), as: UTF8.self) : text
    }

    private static func carrier(of byte: UInt8) -> Unicode.Scalar {
        // All 256 lie within plane 16, so there always is one; U+FFFD stands for the impossible.
        Unicode.Scalar(first + UInt32(byte)) ?? "\u{FFFD}"
    }
}

extension UTF8 {
    /// The scalar that the bytes begin with, and how many of them it takes; `nil` where they begin with none.
    package static func firstScalar(of bytes: ArraySlice<UInt8>) -> (scalar: Unicode.Scalar, width: Int)? {
        var decoder = UTF8()
        var iterator = bytes.prefix(4).makeIterator()
        guard case .scalarValue(let scalar) = decoder.decode(&iterator) else { return nil }
        return (scalar, UTF8.width(scalar))
    }
}
