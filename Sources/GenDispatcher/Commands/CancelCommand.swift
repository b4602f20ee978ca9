import GenShared

/// `gendispatcher cancel`: ends jobs.
struct CancelCommand: DispatcherCommand {
    static let specification = CommandSpecification(
        "cancel", arguments: "ID…", argumentCount: 1...10_000,
        summary: "Ends jobs, wherever they are. Repeating it is harmless.",
        options: [
            .init("wait", nil, "wait until each has ended, and tell how long that took"),
            .init("wait-for", "TIME", "how long to wait (default 30s)"), .config,
        ],
        examples: ["gendispatcher cancel 01jd3k8xk2v0q6m9t4c7w5y1za --wait"])

    private let ids: [JobID]
    private let waits: Bool
    private let limit: Duration

    init(_ arguments: Arguments, limits: JobLimits = JobLimits()) throws {
        ids = try arguments.positionals.map { try arguments.jobID($0) }
        waits = arguments.has("wait")
        limit = try arguments.duration("wait-for") ?? .seconds(30)
    }

    func run(_ context: CommandContext) async throws -> ExitCode {
        let client = context.makeClient()
        let by = context.actor
        var code = ExitCode.done
        for (index, id) in ids.enumerated() {
            do {
                let reply = try await client.cancel(id, by: by)
                let result = try await report(id, reply, client)
                // The first thing that went wrong is what the exit tells.
                if code == .done { code = result }
                if result == .interrupted { break }
            } catch {
                Terminal.writeError(
                    "gendispatcher: not cancelled: \(ids[index...].map(\.rawValue).joined(separator: " "))")
                throw error
            }
        }
        await client.close()
        return code
    }

    private func report(_ id: JobID, _ reply: CancelReply, _ client: Client) async throws -> ExitCode {
        switch reply {
        case .cancelled: Terminal.write("\(id) cancelled\n")
        case .terminal(let state): Terminal.write("\(id) has ended before: \(state.rawValue)\n")
        case .unknown:
            Terminal.writeError("gendispatcher: there is no job \(id); should it still arrive, it ends at once")
            return .unknownJob
        case .flagged:
            guard waits else {
                Terminal.write("\(id) is running; its worker was told\n")
                return .done
            }
            return try await end(of: id, client)
        }
        return .done
    }

    private func end(of id: JobID, _ client: Client) async throws -> ExitCode {
        var session = WatchSession(client: client, id: id, style: .silent)
        session.limit = limit
        session.closesClient = false
        let (code, ending) = try await session.ending()
        guard let ending else { return code }
        if case .cancelled(_, let latency, _) = ending {
            Terminal.write("\(id) cancelled\(latency.map { " after \($0) ms" } ?? "")\n")
        } else if let state = ending.terminalState {
            Terminal.write("\(id) ended before the cancel reached it: \(state.rawValue)\n")
        }
        return .done
    }
}
