import GenShared

/// `gendispatcher result`: what came out of a job.
struct ResultCommand: DispatcherCommand {
    static let specification = CommandSpecification(
        "result", arguments: "ID", argumentCount: 1...1,
        summary: "Prints the result of a completed job. Does not wait: use watch for that.",
        options: [.init("json", nil, "print the last event as JSON, with usage and times"), .config],
        examples: ["gendispatcher result 01jd3k8xk2v0q6m9t4c7w5y1za"])

    private let lookUp: RecordLookUp

    init(_ arguments: Arguments, limits: JobLimits = JobLimits()) throws {
        lookUp = try RecordLookUp(arguments)
    }

    func run(_ context: CommandContext) async throws -> ExitCode {
        let record = try await lookUp.record(context)
        guard let event = record.endingEvent else {
            Terminal.writeError(
                "gendispatcher: job \(record.id) is \(record.state.rawValue); watch it with: gendispatcher watch \(record.id)"
            )
            return .stillRunning
        }
        if lookUp.isJSON {
            Terminal.writeJSON(event.json)
        } else if case .completed(let completion) = event.content {
            Terminal.write((Terminal.isInteractive ? TerminalText.safe(completion.result) : completion.result) + "\n")
        } else {
            Terminal.writeError(EndingLine.text(event.content, id: record.id))
        }
        return record.state.exitCode
    }
}
