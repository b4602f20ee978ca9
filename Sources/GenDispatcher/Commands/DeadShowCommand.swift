import GenShared

/// `gendispatcher dead show`: one dead message, whole.
struct DeadShowCommand: DispatcherCommand {
    static let specification = CommandSpecification(
        "dead show", arguments: "ID", argumentCount: 1...1,
        summary: "Shows a dead message with its body, and what the job's record says.",
        options: [.init("json", nil, "one JSON object a line"), .config],
        examples: ["gendispatcher dead show 01jd3k8xk2v0q6m9t4c7w5y1za", "gendispatcher dead show sha256:1f2e3d4c5b6a"])

    private let name: String
    private let isJSON: Bool

    init(_ arguments: Arguments, limits: JobLimits = JobLimits()) throws {
        name = arguments.positionals[0]
        isJSON = arguments.has("json")
    }

    func run(_ context: CommandContext) async throws -> ExitCode {
        let report = DeadReport(context)
        var shown = 0
        try await DeadQueue(context: context).visit { message in
            // A worker that died between burying and ending a job has left two copies: all are shown.
            guard message.name == name else { return .keep }
            let record = try await report.record(message)
            if isJSON {
                Terminal.writeJSON(DeadReport.json(message, record, withBody: true))
            } else {
                Terminal.write(DeadReport.text(message, record, now: .now) + "\n")
            }
            shown += 1
            return .keep
        }
        await report.close()
        guard shown > 0 else {
            Terminal.writeError("gendispatcher: not in the dead queue: \(TerminalText.safe(name))")
            return .unknownJob
        }
        return .done
    }
}
