import GenShared

/// `gendispatcher submit`: hands in a job, and shows it if asked.
struct SubmitCommand: DispatcherCommand {
    static let specification = CommandSpecification(
        "submit", arguments: "KIND [TEXT | -]", argumentCount: 1...2,
        summary:
            "Hands in a job (slogan, rewrite, reply, image) and prints its id. - reads the text from standard input.",
        options: [
            .init("stream", nil, "show the text while it is made"),
            .init("wait", nil, "wait for the end and print the result"),
            .init("json", nil, "with --stream or --wait: print events as JSON, one a line"),
        ] + JobArguments.options + [
            .init("messages", "FILE", "earlier turns of the conversation: a JSON array of {role, content}"),
            .init("lane", "LANE", "interactive (default) or batch"),
            .init("pool", "NAME", "the pool that serves it (default: that of its kind)"),
            .init("id", "ID", "the job's id (default: a new one)"),
            .init("idempotency-key", "KEY", "for 24 h, repeating the command answers the same job's id"),
            .init("unique-key", "KEY", "one open job under this key at a time, else exit code 5 (kept for 24 h)"),
            .init("replace", nil, "with --unique-key: cancel the open job, wait for its end, then hand this one in"),
            .init("tenant", "NAME", "a label for whoever owns the job"),
            .init("expires-in", "TIME", "give up unless it runs within this time"),
            .init("timeout", "TIME", "how long an attempt may take (default 10m, at most 20m)"),
            .init("deadline", "TIME", "how long accepting may take (default 10s)"),
            .init("wait-for", "TIME", "how long to watch (default: without end)"),
            .init("cancel-on-interrupt", nil, "Ctrl-C cancels the job instead of leaving it running"), .config,
        ],
        examples: [
            "gendispatcher submit slogan \"coffee shop\" --stream",
            "gendispatcher submit rewrite \"The bus was late again\" --style haiku --wait",
            "gendispatcher submit reply - --stream < message.txt",
            "gendispatcher submit slogan \"bakery\" --option temperature=0.2 --option max_tokens=32",
            "gendispatcher submit reply - --idempotency-key mail-4711 < mail.txt",
            "gendispatcher submit rewrite \"The newest draft\" --unique-key draft-7 --replace",
        ])

    private let job: Job
    private let options: SubmitOptions
    private let shows: Bool
    private let style: WatchStyle
    private let deadline: Duration
    private let watchLimit: Duration?
    private let cancelsOnInterrupt: Bool

    init(_ arguments: Arguments, limits: JobLimits = JobLimits()) throws {
        guard !(arguments.has("stream") && arguments.has("wait")) else {
            throw UsageError("--stream and --wait exclude each other")
        }
        shows = arguments.has("stream") || arguments.has("wait")
        guard shows || !arguments.has("json") else { throw UsageError("--json needs --stream or --wait") }
        style =
            arguments.has("json") ? (arguments.has("wait") ? .jsonEnd : .json) : arguments.has("wait") ? .result : .text
        deadline = try arguments.duration("deadline") ?? .seconds(10)
        watchLimit = try arguments.duration("wait-for")
        cancelsOnInterrupt = arguments.has("cancel-on-interrupt")
        options = try Self.options(arguments)
        job = try Self.job(arguments, limits)
    }

    private static func options(_ arguments: Arguments) throws(UsageError) -> SubmitOptions {
        var options = SubmitOptions()
        options.idempotencyKey = arguments.value("idempotency-key")
        options.uniqueKey = arguments.value("unique-key")
        options.replacesHolder = arguments.has("replace")
        guard !options.replacesHolder || options.uniqueKey != nil else {
            throw UsageError("--replace needs --unique-key")
        }
        do throws(SubmitError) { try options.check() } catch { throw UsageError(error.description) }
        return options
    }

    private static func job(_ arguments: Arguments, _ limits: JobLimits) throws(UsageError) -> Job {
        // Everything else is checked first: standard input may be long in coming.
        let kind = arguments.positionals[0]
        let id = try arguments.value("id").map { text throws(UsageError) in try arguments.jobID(text) }
        _ = try JobArguments.job(arguments, kind: kind, text: "check", id: id, limits: limits)
        let text = try InputText.read(
            arguments.positionals.count == 2 ? arguments.positionals[1] : nil, limit: limits.promptBytes)
        var job = try JobArguments.job(arguments, kind: kind, text: text, id: id, limits: limits)
        if let path = arguments.value("messages") { job.input.messages = try ConversationFile.read(path) }
        if let text = arguments.value("lane") {
            guard let lane = Lane(rawValue: text) else { throw UsageError("--lane must be interactive or batch") }
            job.lane = lane
        }
        if let pool = arguments.value("pool") {
            guard Job.isPoolName(pool) else {
                throw UsageError("--pool: a pool's name has 1 to 32 letters, digits, _ or -")
            }
            job.pool = pool
        }
        job.tenant = arguments.value("tenant") ?? job.tenant
        if let limit = try arguments.duration("timeout") { job.timeoutSeconds = max(1, limit.milliseconds / 1000) }
        if let life = try arguments.duration("expires-in") {
            let start = job.createdAt ?? .now
            job.expiresAt = Timestamp(milliseconds: start.milliseconds + Int64(life.milliseconds))
        }
        do throws(JobRejection) { _ = try Job(body: job.body, limits: limits) } catch { throw UsageError("\(error)") }
        return job
    }

    func run(_ context: CommandContext) async throws -> ExitCode {
        let client = context.makeClient()
        guard let id = try await submit(client, context) else {
            let how =
                options.idempotencyKey == nil ? "gendispatcher status \(job.id)" : "repeat the command with its key"
            Terminal.writeError("\ngendispatcher: interrupted; whether the job was accepted: \(how)")
            return .interrupted
        }
        guard shows else {
            Terminal.write("\(id)\n")
            await client.close()
            return .done
        }
        var session = WatchSession(client: client, id: id, style: style)
        session.limit = watchLimit
        session.cancelsOnInterrupt = cancelsOnInterrupt
        session.pool = job.pool
        session.by = context.actor
        return try await session.run()
    }

    /// Hands the job in.
    /// - Returns: the id of the accepted job; `nil` when Ctrl-C came first.
    private func submit(_ client: Client, _ context: CommandContext) async throws -> JobID? {
        let interrupts = InterruptSignal()
        var options = options
        options.replacedBy = "\(context.actor), replaced by \(job.id)"
        let (answers, first) = AsyncThrowingStream.makeStream(of: JobID?.self)
        // Tasks of their own: a group would wait for the submission, which a server that hangs holds up until the
        // deadline. After Ctrl-C it is left behind.
        Task { [options] in
            do { first.yield(try await client.submit(job, options: options, deadline: deadline)) } catch {
                first.finish(throwing: error)
            }
        }
        let interrupt = Task { if await interrupts.next() { first.yield(nil) } }
        defer { interrupt.cancel() }
        for try await answer in answers { return answer }
        return nil
    }
}
