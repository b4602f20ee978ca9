import GenShared

/// The dead queue, looked through from its head: each message is shown to a visitor, who may take it out.
struct DeadQueue: Sendable {
    let context: CommandContext

    /// What becomes of a message that was looked at.
    enum Verdict: Sendable {
        /// It goes back into the queue.
        case keep
        /// It is taken out for good.
        case remove
        /// It goes back, and no more are looked at.
        case stop
    }

    /// Shows every message that lies there now.
    ///
    /// Meanwhile they are hidden from others; whatever happens, those that were not removed go back. RabbitMQ 3.10 takes
    /// many of them back in no order, so the order of the queue says nothing about age.
    /// - Throws: `AMQPError`; what the visitor throws.
    func visit(_ visitor: (DeadMessage) async throws -> Verdict) async throws {
        let browser = AMQPBrowser()
        try await browser.open(url: context.servers.amqp, connectionName: "gendispatcher dead")
        do {
            try await visit(browser, visitor)
        } catch {
            await browser.close()
            throw error
        }
        await browser.close()
    }

    private func visit(
        _ browser: AMQPBrowser, _ visitor: (DeadMessage) async throws -> Verdict
    ) async throws {
        guard let count = try await browser.ready(in: Topology.dead) else { throw Missing() }
        var hasRemoved = false
        // What comes in meanwhile is left for the next time: otherwise this might never end.
        visiting: for _ in 0..<count {
            guard let message = try await browser.next(of: Topology.dead) else { break }
            switch try await visitor(DeadMessage(message, limits: context.limits)) {
            case .keep: break
            case .stop: break visiting
            case .remove:
                try await browser.acknowledge(message)
                hasRemoved = true
            }
        }
        // An acknowledgement has no answer; the answer to a later call says that it was performed.
        if hasRemoved { _ = try await browser.ready(in: Topology.dead) }
    }

    struct Missing: Error, CustomStringConvertible {
        let description = "there is no queue \(Topology.dead); run `gendispatcher setup`"
    }
}

/// Which dead messages a command is about.
struct DeadSelection: Sendable {
    static let options: [CommandSpecification.Option] = [
        .init("reason", "REASON", "all that died of it, such as malformed or invalid_input"),
        .init("all", nil, "all of them"),
        .init("dry-run", nil, "only tell what would be done"),
    ]

    /// Ids as `dead list` shows them.
    let names: Set<String>
    let reason: String?
    let isAll: Bool
    let isDryRun: Bool

    /// - Throws: `UsageError` unless exactly one way to choose is given.
    init(_ arguments: Arguments) throws(UsageError) {
        for name in arguments.positionals where JobID(name) == nil && !name.hasPrefix("sha256:") {
            throw UsageError("\"\(name.prefix(40))\" is no id as `gendispatcher dead list` shows it")
        }
        names = Set(arguments.positionals)
        reason = arguments.value("reason")
        isAll = arguments.has("all")
        isDryRun = arguments.has("dry-run")
        guard [!names.isEmpty, reason != nil, isAll].count(where: { $0 }) == 1 else {
            throw UsageError("which messages? give ids, or --reason REASON, or --all")
        }
    }

    func contains(_ message: DeadMessage) -> Bool {
        isAll || names.contains(message.name) || (reason != nil && message.reason == reason)
    }

    /// Says which ids were not found.
    /// - Returns: the exit code.
    func report(_ found: Set<String>) -> ExitCode {
        let missing = names.subtracting(found).sorted()
        guard missing.isEmpty else {
            let list = TerminalText.safe(missing.joined(separator: " "))
            Terminal.writeError("gendispatcher: not in the dead queue: \(list)")
            return .unknownJob
        }
        if found.isEmpty { Terminal.write("No dead message fits.\n") }
        return .done
    }
}
