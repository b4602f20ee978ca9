import GenShared
import Glibc

/// `gendispatcher dead drop`: takes messages out of the dead queue for good.
struct DeadDropCommand: DispatcherCommand {
    static let specification = CommandSpecification(
        "dead drop", arguments: "[ID…]", argumentCount: 0...10_000,
        summary: "Takes messages out of the dead queue for good. The records of their jobs stay as they are.",
        options: DeadSelection.options + [
            .init("yes", nil, "with --all: do not ask"), .config,
        ],
        examples: [
            "gendispatcher dead drop 01jd3k8xk2v0q6m9t4c7w5y1za", "gendispatcher dead drop --reason malformed",
            "gendispatcher dead drop --all --yes",
        ])

    private let selection: DeadSelection
    private let isSure: Bool

    init(_ arguments: Arguments, limits: JobLimits = JobLimits()) throws {
        selection = try DeadSelection(arguments)
        isSure = arguments.has("yes")
    }

    func run(_ context: CommandContext) async throws -> ExitCode {
        if selection.isAll, !selection.isDryRun, !isSure {
            guard isatty(0) == 1, Terminal.isErrorInteractive else { throw UsageError("--all needs --yes here") }
            guard Self.confirms() else { return .done }
        }
        var found: Set<String> = []
        try await DeadQueue(context: context).visit { message in
            guard selection.contains(message) else { return .keep }
            found.insert(message.name)
            let what = selection.isDryRun ? "would be dropped" : "dropped"
            Terminal.write(TerminalText.safe("\(message.name) (\(message.reason)) \(what)\n"))
            return selection.isDryRun ? .keep : .remove
        }
        return selection.report(found)
    }

    private static func confirms() -> Bool {
        Terminal.writeErrorText("Drop every message of the dead queue for good? Type yes: ")
        guard readLine() == "yes" else {
            Terminal.writeError("Nothing was dropped.")
            return false
        }
        return true
    }
}
