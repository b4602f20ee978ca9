/// One command with its arguments in one contiguous buffer, binary-safe.
///
/// A command may be a script: then the arguments are its keys and values, and the connection puts `EVALSHA` and the
/// digest in front when it sends.
package struct RedisCommand: Sendable {
    private(set) var buffer: [UInt8] = []
    private(set) var lengths: [Int] = []
    let script: RedisScript?
    private(set) var keyCount = 0

    /// A plain command.
    package init(_ words: String...) {
        script = nil
        for word in words { append(word) }
    }

    /// A script with its keys; values follow by `append`.
    package init(script: RedisScript, keys: [String]) {
        self.script = script
        keyCount = keys.count
        buffer.reserveCapacity(512)
        for key in keys { append(key) }
    }

    /// The key that it is about, for messages: a script's first argument, a plain command's second.
    var key: String {
        let index = script == nil ? 1 : 0
        guard lengths.count > index else { return "" }
        let start = lengths[..<index].reduce(0, +)
        return String(decoding: buffer[start..<start + lengths[index]], as: UTF8.self)
    }

    package mutating func append(_ text: String) {
        buffer.append(contentsOf: text.utf8)
        lengths.append(text.utf8.count)
    }

    package mutating func append(_ bytes: [UInt8]) {
        buffer.append(contentsOf: bytes)
        lengths.append(bytes.count)
    }

    package mutating func append(_ number: Int) { append(String(number)) }
}

/// A Lua script, run by its digest and sent whole where Redis does not know it.
package struct RedisScript: Sendable {
    /// For messages and logs.
    package let name: String
    /// The Lua text.
    package let body: String
}
