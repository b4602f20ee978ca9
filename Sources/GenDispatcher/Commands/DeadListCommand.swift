import GenShared

/// `gendispatcher dead list`: what lies in the dead queue.
struct DeadListCommand: DispatcherCommand {
    static let specification = CommandSpecification(
        "dead list",
        summary:
            "Lists the messages that no worker could or may run. They stay in the queue, whose order looking changes. "
            + "Of messages whose jobs ended otherwise, or may yet run, it tells only how many there are.",
        options: [
            .init("reason", "REASON", "only those that died of it, such as malformed or invalid_input"),
            .init("limit", "N", "at most that many (default: all)"),
            .init("json", nil, "one JSON object a line"), .config,
        ],
        examples: ["gendispatcher dead list", "gendispatcher dead list --reason malformed --limit 10"])

    private let reason: String?
    private let limit: Int
    private let isJSON: Bool

    init(_ arguments: Arguments, limits: JobLimits = JobLimits()) throws {
        reason = arguments.value("reason")
        isJSON = arguments.has("json")
        guard let text = arguments.value("limit") else {
            limit = .max
            return
        }
        guard let number = Int(text), number > 0 else {
            throw UsageError("--limit: \"\(text.prefix(20))\" is no number above 0")
        }
        limit = number
    }

    func run(_ context: CommandContext) async throws -> ExitCode {
        let report = DeadReport(context)
        var shown = 0
        var leftovers = DeadLeftovers()
        try await DeadQueue(context: context).visit { message in
            guard reason == nil || message.reason == reason else { return .keep }
            let record = try await report.record(message)
            let standing = DeadStanding(message, record?.record)
            guard standing == .dead else {
                leftovers.count(standing)
                return .keep
            }
            let isRead =
                isJSON
                ? Terminal.writeJSON(DeadReport.json(message, record, withBody: false))
                : Terminal.write(DeadReport.line(message, record, now: .now) + "\n")
            // Nobody reads on, as with `| head -1`.
            guard isRead else { return .stop }
            shown += 1
            return shown < limit ? .keep : .stop
        }
        await report.close()
        for note in leftovers.notes { Terminal.writeError("gendispatcher: \(note)") }
        if shown == 0, !isJSON {
            Terminal.write(reason.map { "No dead message has the reason \($0).\n" } ?? "No job is dead.\n")
        }
        return .done
    }
}
