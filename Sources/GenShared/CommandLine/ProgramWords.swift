/// The words behind the program's name.
///
/// `CommandLine.arguments` silently puts U+FFFD where a word is not UTF-8; a text in another encoding would be rewritten
/// with holes in it.
package enum ProgramWords {
    /// - Throws: `UsageError` that names the word by its number.
    package static func read() throws(UsageError) -> [String] {
        var words: [[UInt8]] = []
        for index in 1..<max(1, Int(CommandLine.argc)) {
            guard let word = CommandLine.unsafeArgv[index] else { break }
            words.append(Array(UnsafeBufferPointer(start: word, count: length(of: word))).map(UInt8.init(bitPattern:)))
        }
        return try decode(words)
    }

    static func decode(_ words: [[UInt8]]) throws(UsageError) -> [String] {
        var texts: [String] = []
        for (index, word) in words.enumerated() {
            guard let text = String(validating: word, as: UTF8.self) else {
                throw UsageError("argument \(index + 1) is not UTF-8; convert it, with iconv for example")
            }
            texts.append(text)
        }
        return texts
    }

    private static func length(of word: UnsafePointer<CChar>) -> Int {
        var length = 0
        while word[length] != 0 { length += 1 }
        return length
    }
}
