import GenShared
import Glibc

/// The text of a job as it comes from a person: an argument, or standard input.
enum InputText {
    /// - Parameter argument: the text; `-` or nothing for standard input.
    /// - Throws: `UsageError`.
    static func read(_ argument: String?, limit: Int = JobLimits().promptBytes) throws(UsageError) -> String {
        if let argument, argument != "-" { return argument }
        guard argument != nil || isatty(0) == 0 else {
            throw UsageError("which text? give it as an argument, or - for standard input")
        }
        guard let bytes = Terminal.readInput(limit: limit + 3) else {
            throw UsageError("standard input cannot be read, or has more than \(limit) bytes")
        }
        return try decode(bytes)
    }

    /// Takes UTF-8, drops one byte order mark and the last line end, which every editor adds.
    /// - Throws: `UsageError` with the place of the first byte that does not fit.
    static func decode(_ bytes: [UInt8]) throws(UsageError) -> String {
        let body = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
        guard var text = String(validating: body, as: UTF8.self) else {
            throw UsageError("standard input is not UTF-8: byte \(firstInvalid(bytes)) does not fit")
        }
        guard !text.unicodeScalars.contains("\0") else { throw UsageError("standard input has a NUL byte") }
        if text.last == "\n" || text.last == "\r\n" { text.removeLast() }
        return text
    }

    private static func firstInvalid(_ bytes: [UInt8]) -> Int {
        var offset = 0
        var decoder = UTF8()
        var iterator = bytes.makeIterator()
        while true {
            switch decoder.decode(&iterator) {
            case .scalarValue(let scalar): offset += UTF8.width(scalar)
            case .emptyInput, .error: return offset
            }
        }
    }
}

/// Earlier turns of a conversation, from a file.
enum ConversationFile {
    /// - Throws: `UsageError`.
    static func read(_ path: String) throws(UsageError) -> [ConversationMessage] {
        let data: [UInt8]
        do throws(BoundedFile.Failure) { data = try BoundedFile.read(path, limit: 1 << 20).bytes } catch {
            switch error {
            case .unreadable(let why): throw UsageError("--messages: \(path) cannot be read: \(why)")
            case .tooLarge: throw UsageError("--messages: \(path) is larger than 1 MiB")
            case .silent: throw UsageError("--messages: \(path) cannot be read: nobody writes into it")
            }
        }
        let value: JSONValue
        do { value = try JSONParser.parse(data) } catch { throw UsageError("--messages: \(path) is \(error)") }
        guard let turns = value.array else {
            throw UsageError("--messages: \(path) must hold an array of {role, content}")
        }
        var messages: [ConversationMessage] = []
        for (index, turn) in turns.enumerated() {
            guard let role = turn["role"]?.string.flatMap(ConversationMessage.Role.init(rawValue:)),
                let content = turn["content"]?.string
            else {
                throw UsageError(
                    "--messages: entry \(index) must have a role (system, user, assistant) and a content")
            }
            messages.append(ConversationMessage(role: role, content: content))
        }
        return messages
    }
}
