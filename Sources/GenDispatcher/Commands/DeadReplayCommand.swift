import GenShared

/// `gendispatcher dead replay`: hands dead jobs in again.
struct DeadReplayCommand: DispatcherCommand {
    static let specification = CommandSpecification(
        "dead replay", arguments: "[ID…]", argumentCount: 0...10_000,
        summary:
            "Hands dead jobs in again, each under a new id, without their time of expiry, and takes them out of the "
            + "dead queue once RabbitMQ has them. Prints the old and the new id. Repeating it within 24 h is harmless. "
            + "The message of a job that did not fail is not replayed: where it has ended, the message is taken out.",
        options: DeadSelection.options + [
            .init("deadline", "TIME", "how long accepting each may take (default 10s)"), .config,
        ],
        examples: [
            "gendispatcher dead replay 01jd3k8xk2v0q6m9t4c7w5y1za",
            "gendispatcher dead replay --reason unavailable --dry-run", "gendispatcher dead replay --all",
        ])

    private let selection: DeadSelection
    private let deadline: Duration

    init(_ arguments: Arguments, limits: JobLimits = JobLimits()) throws {
        selection = try DeadSelection(arguments)
        deadline = try arguments.duration("deadline") ?? .seconds(10)
    }

    func run(_ context: CommandContext) async throws -> ExitCode {
        let client = context.makeClient()
        var found: Set<String> = []
        var failed = 0
        try await DeadQueue(context: context).visit { message in
            guard selection.contains(message) else { return .keep }
            found.insert(message.name)
            guard case .success(let job) = message.job else {
                failed += 1
                Terminal.writeError("gendispatcher: \(message.name) is no job and cannot be replayed; see `dead show`")
                return .keep
            }
            if let verdict = try await leave(message, client) {
                if verdict == .keep { failed += 1 }
                return selection.isDryRun ? .keep : verdict
            }
            guard !selection.isDryRun else {
                Terminal.write("\(message.name) would be replayed as a \(job.kind) in \(job.pool).\(job.lane)\n")
                return .keep
            }
            let id = try await client.submit(
                Self.replay(of: job), options: Self.options(message), deadline: deadline)
            Terminal.write("\(message.name) replayed as \(id)\n")
            return .remove
        }
        await client.close()
        let code = selection.report(found)
        return code == .done && failed > 0 ? .failed : code
    }

    /// - Returns: what becomes of the message of a job that is not dead; `nil` for one to replay.
    private func leave(_ message: DeadMessage, _ client: Client) async throws -> DeadQueue.Verdict? {
        guard let id = message.jobID else { return nil }
        let standing = DeadStanding(message, try await client.record(id))
        guard let note = standing.note else { return nil }
        Terminal.writeError("gendispatcher: \(message.name) \(note)")
        // What has ended needs no message any more; what is open still has its own, but that is for its worker to know.
        if case .over = standing { return .remove }
        return .keep
    }

    /// The same job, made anew.
    static func replay(of job: Job) -> Job {
        var copy = job
        let now = Timestamp.now
        copy.id = JobID(atMilliseconds: now.milliseconds)
        (copy.createdAt, copy.expiresAt) = (now, nil)
        copy.metadata["replay_of"] = .string(job.id.rawValue)
        return copy
    }

    /// A crash after the job was accepted leaves the message where it is; the next replay finds that job by this key.
    ///
    /// It is also the same for two copies of one message.
    static func options(_ message: DeadMessage) -> SubmitOptions {
        var options = SubmitOptions()
        options.idempotencyKey = "dead:\(message.name):\(message.digest)"
        return options
    }
}
