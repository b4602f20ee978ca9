import GenShared

/// `gendispatcher status`: where a job stands.
struct StatusCommand: DispatcherCommand {
    static let specification = CommandSpecification(
        "status", arguments: "ID", argumentCount: 1...1,
        summary: "Tells where a job stands. The exit code tells it, too.",
        options: [.init("json", nil, "print one JSON object"), .config],
        examples: ["gendispatcher status 01jd3k8xk2v0q6m9t4c7w5y1za"])

    private let lookUp: RecordLookUp

    init(_ arguments: Arguments, limits: JobLimits = JobLimits()) throws {
        lookUp = try RecordLookUp(arguments)
    }

    func run(_ context: CommandContext) async throws -> ExitCode {
        let record = try await lookUp.record(context)
        if lookUp.isJSON { Terminal.writeJSON(json(record)) } else { Terminal.write(text(record)) }
        return record.state.exitCode
    }

    private func text(_ record: JobRecord) -> String {
        var line = "\(record.id) \(record.state.rawValue)"
        line += " \(record.kind?.rawValue ?? "?") \(record.pool).\(record.lane)"
        if record.attempt > 0 { line += ", attempt \(record.attempt)\(record.worker.map { " on \($0)" } ?? "")" }
        if record.state == .running || record.state == .retrying { line += ", \(record.failures) failed" }
        if case .failed(let failure, _)? = record.ending { line += ": \(failure.message)" }
        return TerminalText.safe(line) + "\n"
    }

    private func json(_ record: JobRecord) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("id", record.id.rawValue)
        writer.member("state", record.state.rawValue)
        writer.member("kind", ifPresent: record.kind?.rawValue)
        writer.member("pool", record.pool)
        writer.member("lane", record.lane)
        writer.member("attempt", record.attempt)
        writer.member("failures", record.failures)
        writer.member("worker", ifPresent: record.worker)
        writer.member("last_event", record.last.description)
        writer.member("queued_at", ifPresent: record.queuedAt?.description)
        writer.member("started_at", ifPresent: record.startedAt?.description)
        writer.member("finished_at", ifPresent: record.finishedAt?.description)
        writer.member("expires_at", ifPresent: record.expiresAt?.description)
        if let ending = record.endingEvent {
            writer.key("end")
            writer.raw(ending.json)
        }
        writer.endObject()
        return writer.text
    }
}

extension JobState {
    /// What the state means for a script.
    var exitCode: ExitCode {
        switch self {
        case .completed: .done
        case .failed: .failed
        case .cancelled: .cancelled
        case .expired: .expired
        case .queued, .running, .retrying: .stillRunning
        }
    }
}
