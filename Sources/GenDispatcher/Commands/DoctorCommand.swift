import GenShared

/// `gendispatcher doctor`: what is wrong with the servers, and what would mend it.
struct DoctorCommand: DispatcherCommand {
    static let specification = CommandSpecification(
        "doctor", summary: "Checks RabbitMQ, Redis and the workers, and says what is wrong and how to mend it.",
        options: [
            .init("pool", "NAME", "a pool to look at (default: text)", isRepeatable: true), .config,
        ],
        examples: ["gendispatcher doctor"])

    private let pools: [String]

    init(_ arguments: Arguments, limits: JobLimits = JobLimits()) throws {
        pools = arguments.all("pool").isEmpty ? ["text"] : arguments.all("pool")
        for name in pools where !Job.isPoolName(name) {
            throw UsageError("--pool: a pool's name has 1 to 32 letters, digits, _ or -")
        }
    }

    func run(_ context: CommandContext) async throws -> ExitCode {
        var findings = await RedisCheck(url: context.servers.redis).run()
        findings += await BrokerCheck(url: context.servers.amqp, pools: pools).run()
        for finding in findings { Terminal.write(TerminalText.safe(finding.line) + "\n") }
        if findings.contains(where: \.isUnreachable) { return .unreachable }
        return findings.contains { $0.severity == .fault } ? .failed : .done
    }
}

/// One thing that doctor looked at.
struct Finding: Sendable {
    enum Severity: Sendable {
        case fine
        case warning
        case fault
    }

    let severity: Severity
    let text: String
    var isUnreachable = false

    var line: String {
        switch severity {
        case .fine: "ok    \(text)"
        case .warning: "WARN  \(text)"
        case .fault: "FAIL  \(text)"
        }
    }
}

/// Looks at Redis.
struct RedisCheck {
    let url: RedisURL

    func run() async -> [Finding] {
        let connection = RedisConnection(url: url, name: "gendispatcher-doctor")
        var findings: [Finding] = []
        do throws(RedisError) {
            let info = try await connection.send(RedisCommand("INFO")).string ?? ""
            findings.append(Finding(severity: .fine, text: "Redis \(field("redis_version", info)) at \(url.place)"))
            findings += judge(info)
            findings += await workers(connection)
        } catch {
            findings.append(Finding(severity: .fault, text: error.message, isUnreachable: true))
        }
        await connection.close()
        return findings
    }

    private func judge(_ info: String) -> [Finding] {
        var findings: [Finding] = []
        let policy = field("maxmemory_policy", info)
        if policy == "noeviction" {
            findings.append(Finding(severity: .fine, text: "eviction policy noeviction"))
        } else {
            findings.append(
                Finding(
                    severity: .fault,
                    text: "eviction policy is \(policy): Redis may drop records of running jobs; set "
                        + "`maxmemory-policy noeviction`"))
        }
        if field("role", info) != "master" {
            findings.append(
                Finding(severity: .fault, text: "this Redis is a replica; point GEN_REDIS_URL at the primary"))
        }
        if field("aof_enabled", info) != "1" {
            findings.append(
                Finding(
                    severity: .warning,
                    text: "no append-only file: a restart of Redis loses jobs' records; set `appendonly yes`"))
        }
        return findings
    }

    private func workers(_ connection: RedisConnection) async -> [Finding] {
        do throws(RedisError) {
            let since = Timestamp.now.milliseconds - 30_000
            let reply = try await connection.send(RedisCommand("ZRANGEBYSCORE", JobKeys.workers, "\(since)", "+inf"))
            let count = reply.array?.count ?? 0
            return [
                count > 0
                    ? Finding(severity: .fine, text: "\(count) worker\(count == 1 ? "" : "s") seen in the last 30 s")
                    : Finding(severity: .warning, text: "no worker was seen in the last 30 s; start `genworker run`")
            ]
        } catch { return [Finding(severity: .warning, text: "workers cannot be listed: \(error.message)")] }
    }

    private func field(_ name: String, _ info: String) -> String {
        for line in info.split(whereSeparator: \.isNewline) where line.hasPrefix("\(name):") {
            return String(line.dropFirst(name.count + 1))
        }
        return "?"
    }
}

/// Looks at RabbitMQ.
struct BrokerCheck {
    let url: AMQPURL
    let pools: [String]

    func run() async -> [Finding] {
        let publisher = AMQPPublisher(url: url, name: "gendispatcher doctor")
        var findings: [Finding] = []
        do throws(AMQPError) {
            let connection = try await publisher.usable()
            let version = await connection.serverVersion
            findings.append(Finding(severity: .fine, text: "RabbitMQ \(version) at \(url.place)"))
            for pool in pools {
                for lane in Lane.allCases { findings.append(try await queue(pool, lane, connection)) }
            }
            for name in [Topology.dropped, Topology.dead] + Topology.tiers.map({ "gen.retry.v1.\($0.name)" })
            where try await connection.queueCounts(name) == nil {
                findings.append(Finding(severity: .fault, text: "there is no queue \(name); run `gendispatcher setup`"))
            }
        } catch {
            let isAway = error.code == .unreachable || error.code == .unauthorized
            findings.append(Finding(severity: .fault, text: error.message, isUnreachable: isAway))
        }
        await publisher.close()
        return findings
    }

    private func queue(
        _ pool: String, _ lane: Lane, _ connection: AMQPConnection
    ) async throws(AMQPError) -> Finding {
        let name = Topology.queue(pool: pool, lane: lane)
        guard let counts = try await connection.queueCounts(name) else {
            return Finding(
                severity: .fault, text: "there is no queue \(name); run `gendispatcher setup --pool \(pool)`")
        }
        let text = "\(name): \(counts.ready) ready, \(counts.consumers) consumer\(counts.consumers == 1 ? "" : "s")"
        // Batch consumers come and go with free slots; an interactive queue without any is not served.
        guard counts.consumers == 0, lane == .interactive else { return Finding(severity: .fine, text: text) }
        return Finding(severity: .warning, text: "\(text): no worker serves pool \"\(pool)\"; start `genworker run`")
    }
}
