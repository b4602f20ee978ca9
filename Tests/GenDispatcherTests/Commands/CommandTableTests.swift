import GenShared
import Testing

@testable import GenDispatcher

/// Commands of one word and of several.
@Suite("Command table")
struct CommandTableTests {
    private let table = CommandTable(commands: GenDispatcher.commands)

    private func meaning(_ line: String) -> String {
        switch table.match(line.split(separator: " ").map(String.init)) {
        case .command(let command, let arguments):
            "\(command.specification.name)(\(arguments.joined(separator: ",")))"
        case .group(let name, let commands, let rest): "\(name)+\(commands.count)[\(rest.joined(separator: ","))]"
        case .unknown: "unknown"
        }
    }

    @Test(
        "a line means the command whose name it begins with",
        arguments: [
            ("submit slogan x", "submit(slogan,x)"), ("dead list --json", "dead list(--json)"),
            ("dead show abc", "dead show(abc)"), ("dead", "dead+4[]"), ("dead --help", "dead+4[--help]"),
            ("dead frobnicate", "dead+4[frobnicate]"), ("list", "unknown"), ("submi", "unknown"),
            ("dead list show", "dead list(show)"),
        ])
    func match(line: String, expected: String) { #expect(meaning(line) == expected) }

    @Test("each first word is told once")
    func firstWords() {
        #expect(table.firstWords.count(where: { $0 == "dead" }) == 1 && table.firstWords.contains("doctor"))
    }

    @Test("a group's help is exit code 0, a group alone or with an unknown word 2")
    func exits() async {
        #expect(await GenDispatcher.run(["dead", "--help"], environment: [:]) == .done)
        #expect(await GenDispatcher.run(["dead", "list", "--help"], environment: [:]) == .done)
        #expect(await GenDispatcher.run(["dead"], environment: [:]) == .usage)
        #expect(await GenDispatcher.run(["dead", "frobnicate"], environment: [:]) == .usage)
    }
}
