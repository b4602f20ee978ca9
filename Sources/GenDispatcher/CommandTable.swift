import GenShared

/// The commands by their names, which may have several words, as `dead list`.
struct CommandTable {
    /// What a command line means.
    enum Match {
        case command(any DispatcherCommand.Type, arguments: [String])
        /// A name that only begins commands, such as `dead`, with what stands after it.
        case group(String, [any DispatcherCommand.Type], rest: [String])
        case unknown
    }

    let commands: [any DispatcherCommand.Type]

    /// What can stand first on a command line.
    var firstWords: [String] {
        commands.map { Self.words($0)[0] }.reduce(into: []) { if !$0.contains($1) { $0.append($1) } }
    }

    func match(_ words: [String]) -> Match {
        var group: (prefix: ArraySlice<String>, commands: [any DispatcherCommand.Type])?
        for count in 1...max(1, words.count) {
            let prefix = words.prefix(count)
            let candidates = commands.filter { Self.words($0).starts(with: prefix) }
            if let command = candidates.first(where: { Self.words($0).count == count }) {
                return .command(command, arguments: Array(words.dropFirst(count)))
            }
            if candidates.isEmpty { break }
            group = (prefix, candidates)
        }
        guard let group else { return .unknown }
        return .group(
            group.prefix.joined(separator: " "), group.commands, rest: Array(words.dropFirst(group.prefix.count)))
    }

    /// The help of some commands: a line of usage and one of meaning for each.
    static func lines(_ commands: [any DispatcherCommand.Type]) -> String {
        commands.map { command in
            "  \(command.specification.usage(program: "gendispatcher"))\n      \(command.specification.summary)"
        }.joined(separator: "\n")
    }

    private static func words(_ command: any DispatcherCommand.Type) -> [String] {
        command.specification.name.split(separator: " ").map(String.init)
    }
}
