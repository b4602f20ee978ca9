/// Makes text from elsewhere harmless on a terminal.
///
/// Model output can carry sequences that set the clipboard, change the title or reorder what is read. What a terminal
/// would obey is dropped; line ends and tabs stay. Works on whole scalars, so pieces can be cleaned one by one: the
/// introducing character is dropped, and what is left of a sequence is plain text.
package enum TerminalText {
    package static func safe(_ text: String) -> String {
        var safe = String.UnicodeScalarView()
        for scalar in text.unicodeScalars where isHarmless(scalar) { safe.append(scalar) }
        return String(safe)
    }

    /// The same on one line: what came from elsewhere must not look like a line of ours.
    package static func line(_ text: String) -> String {
        safe(text.split(whereSeparator: \.isNewline).joined(separator: " "))
    }

    /// JSON on one line, with what a terminal would obey escaped: it stands within strings only, where that is the same.
    package static func json(_ text: String, forTerminal: Bool) -> String {
        var line = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            if scalar.value == 0x0A || scalar.value == 0x0D {
                // Between two tokens, since strings hold none.
                line.append(" ")
            } else if forTerminal, !isHarmless(scalar) {
                // All of them lie below U+10000, so one escape is enough.
                let digits = String(scalar.value, radix: 16)
                line.append(contentsOf: "\\u\(String(repeating: "0", count: 4 - digits.count))\(digits)".unicodeScalars)
            } else {
                line.append(scalar)
            }
        }
        return String(line)
    }

    private static func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x09, 0x0A: true
        case 0..<0x20, 0x7F, 0x80...0x9F: false  // C0 with escape, DEL, C1.
        case 0x202A...0x202E, 0x2066...0x2069, 0x200E, 0x200F, 0x061C: false  // Marks that reorder text.
        default: true
        }
    }
}
