import Foundation
import GenShared
import Testing

@testable import GenDispatcher

@Suite("Input text")
struct InputTextTests {
    private func message(_ bytes: [UInt8]) -> String {
        do throws(UsageError) {
            _ = try InputText.decode(bytes)
            return "accepted"
        } catch { return error.description }
    }

    @Test(
        "B20: one byte order mark and the last line end go, the rest stays",
        arguments: [
            ("", ""), ("a", "a"), ("a\n", "a"), ("a\r\n", "a"), ("a\n\n", "a\n"), ("\na", "\na"), ("\n", ""),
            ("\u{FEFF}a", "a"), ("\u{FEFF}\u{FEFF}a", "\u{FEFF}a"), ("a\u{FEFF}", "a\u{FEFF}"),
            ("a\r\nb\r\n", "a\r\nb"),
            ("  a  ", "  a  "), ("-x", "-x"),
        ])
    func decode(_ text: String, _ wanted: String) throws {
        #expect(Array(try InputText.decode(Array(text.utf8)).unicodeScalars) == Array(wanted.unicodeScalars))
    }

    @Test("B20: what is not UTF-8 is refused with the place of the first wrong byte, mark included")
    func invalid() {
        #expect(message([0xFF]).contains("byte 0 "))
        #expect(message(Array("aé".utf8) + [0x80, 0x41]).contains("byte 3 "))
        #expect(message([0xEF, 0xBB, 0xBF, 0x61, 0xC3]).contains("byte 4 "))
        // A surrogate, an overlong slash, a scalar beyond the last.
        for bytes in [[0xED, 0xA0, 0x80], [0xC0, 0xAF], [0xF5, 0x80, 0x80, 0x80]] as [[UInt8]] {
            #expect(message([0x61] + bytes).contains("byte 1 "))
        }
        #expect(message([0x61, 0, 0x62]).contains("NUL"))
    }

    @Test("an argument is taken as it stands")
    func argument() throws { #expect(try InputText.read("a\n") == "a\n") }

    @Test("B19: earlier turns come from a file of roles and contents")
    func conversation() throws {
        let path = "\(NSTemporaryDirectory())/gen-\(UUID().uuidString)"
        func read(_ text: String) throws -> [ConversationMessage] {
            try Data(text.utf8).write(to: URL(filePath: path))
            defer { unlink(path) }
            return try ConversationFile.read(path)
        }
        #expect(
            try read(#"[{"role":"user","content":"a"},{"role":"assistant","content":"b"}]"#)
                == [
                    ConversationMessage(role: .user, content: "a"), ConversationMessage(role: .assistant, content: "b"),
                ])
        #expect(try read("[]") == [])
        for text in ["{}", "[1]", #"[{"role":"god","content":"a"}]"#, #"[{"role":"user"}]"#, "[", ""] {
            #expect(throws: UsageError.self, "\(text)") { try read(text) }
        }
        #expect(throws: UsageError.self) { try ConversationFile.read("/nowhere/at/all") }
        #expect(throws: UsageError.self) { try ConversationFile.read(NSTemporaryDirectory()) }
        #expect(throws: UsageError.self) { try ConversationFile.read("/dev/zero") }
    }
}
