/// What is wrong with a command line.
package struct UsageError: Error, Sendable, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}

/// A command line, read by a specification: unknown and doubled options are refused, never guessed.
package struct Arguments: Sendable {
    package private(set) var positionals: [String] = []
    private var values: [String: [String]] = [:]
    private var switches: Set<String> = []

    /// Whether help was asked for; then nothing was checked.
    package private(set) var wantsHelp = false

    /// - Throws: `UsageError`.
    package init(_ words: [String], _ specification: CommandSpecification) throws(UsageError) {
        if words.prefix(while: { $0 != "--" }).contains(where: { $0 == "--help" || $0 == "-h" }) {
            wantsHelp = true
            return
        }
        var rest = words[...]
        while let word = rest.popFirst() {
            if word == "--" {
                positionals += rest
                break
            }
            guard word.hasPrefix("-"), word != "-" else {
                positionals.append(word)
                continue
            }
            try take(word, &rest, specification)
        }
        guard specification.argumentCount.contains(positionals.count) else {
            throw UsageError(Self.countMessage(positionals, specification))
        }
    }

    /// Whether a switch was given.
    package func has(_ name: String) -> Bool { switches.contains(name) }
    /// The value of an option.
    package func value(_ name: String) -> String? { values[name]?.first }
    /// All values of a repeatable option.
    package func all(_ name: String) -> [String] { values[name] ?? [] }

    /// The value of an option as a time.
    /// - Throws: `UsageError`.
    package func duration(_ name: String) throws(UsageError) -> Duration? {
        guard let text = value(name) else { return nil }
        guard let duration = DurationText.parse(text), duration > .zero else {
            throw UsageError("--\(name): \"\(text.prefix(20))\" is no time such as 30s, 5m or 1.5h, above 0")
        }
        return duration
    }

    private mutating func take(
        _ word: String, _ rest: inout ArraySlice<String>, _ specification: CommandSpecification
    ) throws(UsageError) {
        let parts = word.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let shown = String(parts[0].prefix(40))
        guard word.hasPrefix("--"),
            let option = specification.options.first(where: { "--\($0.name)" == parts[0] })
        else {
            throw UsageError("unknown option \(shown); see --help (put -- before text that begins with -)")
        }
        guard option.value != nil else {
            guard parts.count == 1 else { throw UsageError("\(shown) takes no value") }
            guard switches.insert(option.name).inserted else { throw UsageError("\(shown) is given twice") }
            return
        }
        let value: String
        if parts.count == 2 {
            value = String(parts[1])
        } else {
            guard let next = rest.popFirst() else { throw UsageError("\(shown) needs a value") }
            value = next
        }
        guard option.isRepeatable || values[option.name] == nil else { throw UsageError("\(shown) is given twice") }
        values[option.name, default: []].append(value)
    }

    private static func countMessage(_ positionals: [String], _ specification: CommandSpecification) -> String {
        let wanted = specification.argumentCount
        if positionals.count > wanted.upperBound {
            return
                "too many arguments: \(specification.name) takes \(specification.arguments.isEmpty ? "none" : specification.arguments)"
                + "; put text in quotes"
        }
        return "\(specification.name) needs \(specification.arguments)"
    }
}
