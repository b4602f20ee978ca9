/// What a command takes, in one place for the parser, the help and the completions.
package struct CommandSpecification: Sendable {
    package struct Option: Sendable {
        package var name: String
        /// What stands for the value in the help; `nil` for a switch.
        package var value: String?
        package var help: String
        package var isRepeatable = false

        package init(_ name: String, _ value: String? = nil, _ help: String, isRepeatable: Bool = false) {
            self.name = name
            self.value = value
            self.help = help
            self.isRepeatable = isRepeatable
        }
    }

    package var name: String
    /// How arguments are written in the usage line.
    package var arguments: String
    /// How many arguments there may be.
    package var argumentCount: ClosedRange<Int>
    package var summary: String
    package var options: [Option]
    package var examples: [String]

    package init(
        _ name: String, arguments: String = "", argumentCount: ClosedRange<Int> = 0...0, summary: String,
        options: [Option] = [], examples: [String] = []
    ) {
        self.name = name
        self.arguments = arguments
        self.argumentCount = argumentCount
        self.summary = summary
        self.options = options
        self.examples = examples
    }

    /// The text of `--help`.
    package func help(program: String) -> String {
        var lines = ["usage: \(usage(program: program))", "", summary]
        if !options.isEmpty {
            lines += ["", "Options:"]
            let heads = options.map { "--\($0.name)\($0.value.map { " \($0)" } ?? "")" }
            let width = min(30, (heads.map(\.count).max() ?? 0) + 2)
            for (head, option) in zip(heads, options) {
                let pad = String(repeating: " ", count: max(2, width - head.count))
                lines.append("  \(head)\(pad)\(option.help)")
            }
        }
        if !examples.isEmpty { lines += ["", "Examples:"] + examples.map { "  \($0)" } }
        return (lines + ["", ExitCode.help]).joined(separator: "\n")
    }

    /// The usage line.
    package func usage(program: String) -> String {
        [program, name, arguments, options.isEmpty ? "" : "[options]"].filter { !$0.isEmpty }.joined(separator: " ")
    }
}
