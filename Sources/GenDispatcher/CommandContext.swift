import GenShared

/// What every command is given.
struct CommandContext: Sendable {
    let servers: ServerSettings
    /// The bounds of a job.
    let limits: JobLimits
    /// Who runs the command, for the events of a cancel.
    let user: String?

    /// How the events of a cancel name whoever asked for it.
    var actor: String { user.map { "gendispatcher (\($0))" } ?? "gendispatcher" }

    /// A client for the servers.
    func makeClient() -> Client {
        Client(amqp: servers.amqp, redis: servers.redis, limits: limits, name: "gendispatcher")
    }
}

/// One command: what it takes, and what it does.
protocol DispatcherCommand: Sendable {
    static var specification: CommandSpecification { get }
    /// - Throws: `UsageError` for arguments that make no sense.
    init(_ arguments: Arguments, limits: JobLimits) throws
    /// - Throws: what `CommandFailure` turns into a line and an exit code.
    func run(_ context: CommandContext) async throws -> ExitCode
}

/// Turns an error into one line on standard error and an exit code.
enum CommandFailure {
    static func report(_ error: any Error) -> ExitCode {
        let (message, code) = explain(error)
        Terminal.writeError("gendispatcher: \(TerminalText.line(message))")
        return code
    }

    private static func explain(_ error: any Error) -> (String, ExitCode) {
        switch error {
        case let error as UsageError: (error.description, .usage)
        case let error as StoreError:
            (error.message, error.isUnreachable || !error.isCertainlyUndone ? .unreachable : .failed)
        case let error as AMQPError:
            switch error.code {
            case .unreachable, .unauthorized, .connectionLost: (error.message, .unreachable)
            default: (error.message, .failed)
            }
        case SubmitError.invalid(let rejection): ("\(rejection)", .usage)
        case SubmitError.unreachable(let reason): (reason, .unreachable)
        case SubmitError.rejected(let reason), SubmitError.held(_, let reason): (reason, .rejected)
        case SubmitError.unknown(let id, let reason):
            (
                "whether job \(id) was accepted is not known: \(reason); look with: gendispatcher status \(id)",
                .unknownOutcome
            )
        case WatchError.unknownJob: ("there is no such job, or it is no longer kept", .unknownJob)
        case is CancellationError: ("interrupted", .interrupted)
        default: ("\(error)", .failed)
        }
    }
}

extension Arguments {
    /// The first argument as a job's id.
    /// - Throws: `UsageError`.
    func jobID(_ text: String? = nil) throws(UsageError) -> JobID {
        guard let id = JobID(text ?? positionals[0]) else {
            throw UsageError("that is no job id: 1 to 64 letters, digits, _ or -")
        }
        return id
    }
}

extension CommandSpecification.Option {
    /// The option that every command has.
    static let config = CommandSpecification.Option(
        "config", "FILE", "JSON5 configuration (else GEN_CONFIG, then the usual places)")
}
