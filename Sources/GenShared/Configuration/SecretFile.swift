/// A file that holds one secret, as orchestrators hand them out.
package struct SecretFile: Sendable {
    package var text: String
    /// What its owner should mend, though it can be used.
    package var warning: String?

    /// Reads it; one line end at its end goes.
    /// - Parameter setting: what names the file, for messages.
    /// - Throws: `ConfigurationError`, which never tells what is in the file.
    package init(path: String, setting: String) throws(ConfigurationError) {
        func wrong(_ reason: String) -> ConfigurationError { ConfigurationError("\(setting): \(path) \(reason)") }
        let content: BoundedFile.Content
        do throws(BoundedFile.Failure) { content = try BoundedFile.read(path, limit: 4096) } catch {
            switch error {
            case .unreadable(let why): throw wrong("cannot be read: \(why)")
            case .tooLarge: throw wrong("is not a short text: it has more than 4096 bytes")
            case .silent: throw wrong("cannot be read: nobody writes into it")
            }
        }
        // Whoever may write it chooses the server that is sent our password.
        guard !content.othersMayWrite else { throw wrong("may be written by anybody; run: chmod o-w \(path)") }
        guard var text = String(validating: content.bytes, as: UTF8.self) else {
            throw wrong("is not a short text: it is not UTF-8")
        }
        if text.last == "\n" || text.last == "\r\n" { text.removeLast() }
        guard !text.isEmpty else { throw wrong("is empty") }
        // A line break would end a header, and NUL a C string.
        guard !text.unicodeScalars.contains(where: { $0.value < 0x20 || $0.value == 0x7F }) else {
            throw wrong("has more than one line, or control characters")
        }
        self.text = text
        if content.othersMayRead { warning = "\(setting): \(path) may be read by anybody; run: chmod o-r \(path)" }
    }
}
