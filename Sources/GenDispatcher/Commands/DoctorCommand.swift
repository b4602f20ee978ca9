import GenShared

/// `gendispatcher doctor`: what is wrong with the servers, and what would mend it.
struct DoctorCommand: DispatcherCommand {
    static let specification = CommandSpecification(
        "doctor",
        summary: "Checks RabbitMQ, Redis and the workers, and says what is wrong and how to mend it. Exit code 1 if "
            + "something does not work, 0 with warnings only.",
        options: [
            .init("pool", "NAME", "a pool to look at (default: text)", isRepeatable: true),
            .init("fix", nil, "declare missing exchanges, queues and bindings, as setup does"),
            .init(
                "resend", nil, "instead: publish waiting jobs again where a queue holds fewer messages than jobs wait"),
            .init("dry-run", nil, "with --resend: only tell what would be published"), .config,
        ],
        examples: ["gendispatcher doctor", "gendispatcher doctor --resend --dry-run"])

    private let pools: [String]
    private let mends: Bool
    private let resends: Bool
    private let isDryRun: Bool

    init(_ arguments: Arguments, limits: JobLimits = JobLimits()) throws {
        pools = arguments.all("pool").isEmpty ? ["text"] : arguments.all("pool")
        for name in pools where !Job.isPoolName(name) {
            throw UsageError("--pool: a pool's name has 1 to 32 letters, digits, _ or -")
        }
        mends = arguments.has("fix")
        resends = arguments.has("resend")
        isDryRun = arguments.has("dry-run")
        guard !isDryRun || resends else { throw UsageError("--dry-run needs --resend") }
        guard !(mends && resends) else { throw UsageError("--fix and --resend exclude each other") }
        guard !resends || arguments.all("pool").isEmpty else {
            throw UsageError("--resend looks at every pool: leave --pool out")
        }
    }

    func run(_ context: CommandContext) async throws -> ExitCode {
        if resends { return try await resend(context) }
        let servers = context.servers
        var findings = await bounded("Redis at \(servers.redis.place)") { await RedisCheck(url: servers.redis).run() }
        findings += await bounded("RabbitMQ at \(servers.amqp.place)") {
            await BrokerCheck(url: servers.amqp, pools: pools, mends: mends).run()
        }
        for finding in findings { Terminal.write(TerminalText.safe(finding.line) + "\n") }
        if findings.contains(where: \.isUnreachable) { return .unreachable }
        return findings.contains { $0.severity == .fault } ? .failed : .done
    }

    /// A sick server may answer each question late: doctor ends in any case.
    private func bounded(
        _ server: String, _ check: @escaping @Sendable () async -> [Finding]
    ) async -> [Finding] {
        let answer = await Deadline(in: .seconds(30), on: SystemScheduler()).race { await check() }
        if case .success(let findings) = answer { return findings }
        return [
            Finding(
                severity: .fault, text: "\(server) did not answer every question within 30 s: look at its log",
                isUnreachable: true)
        ]
    }

    private func resend(_ context: CommandContext) async throws -> ExitCode {
        let connection = RedisConnection(
            url: context.servers.redis, name: "gendispatcher-doctor", scripts: RedisScript.all)
        let browser = AMQPBrowser()
        try await browser.open(url: context.servers.amqp, connectionName: "gendispatcher doctor")
        let publisher = AMQPPublisher(url: context.servers.amqp, name: "gendispatcher doctor")
        let resend = Resend(
            store: RedisJobStore(connection: connection), publisher: AMQPJobPublisher(publisher),
            ready: { try await browser.ready(in: $0) }, isDryRun: isDryRun)
        let code = try await resend.run()
        await publisher.close()
        await browser.close()
        await connection.close()
        return code
    }
}
