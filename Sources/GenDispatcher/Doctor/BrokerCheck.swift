import GenShared
import Synchronization

/// Looks at RabbitMQ, with AMQP alone: the management plugin need not be there.
struct BrokerCheck {
    let url: AMQPURL
    let pools: [String]
    /// Whether what is missing is declared.
    let mends: Bool

    func run() async -> [Finding] {
        var findings: [Finding] = []
        do throws(AMQPError) {
            let browser = AMQPBrowser()
            try await browser.open(url: url, connectionName: "gendispatcher doctor")
            let version = await browser.serverVersion
            findings.append(.fine("RabbitMQ \(version) at \(url.place)"))
            findings += Self.judge(version: version)
            if mends { findings.append(await declare()) }
            // Without the exchange, which is reported below, there is nothing to publish to.
            let jobs = Topology(pools: []).exchanges.filter { $0.name == Topology.jobs }
            for exchange in jobs where try await browser.exists(exchange) { findings.append(try await alarm()) }
            let topology = TopologyCheck(browser: browser, pools: pools)
            findings += try await topology.run()
            if !mends {
                findings.append(
                    .fine(
                        "bindings cannot be read over AMQP; `gendispatcher doctor --fix` declares them again, which "
                            + "changes nothing where they are in place"))
            }
            await browser.close()
        } catch {
            let isAway = error.code == .unreachable || error.code == .unauthorized
            findings.append(Finding(severity: .fault, text: error.message, isUnreachable: isAway))
        }
        return findings
    }

    static func judge(version: String) -> [Finding] {
        var findings: [Finding] = []
        if !RedisInfo.version(version, isAtLeast: 3, 10) {
            findings.append(.fault("RabbitMQ \(version) is too old: 3.10 or later is needed"))
        }
        if !RedisInfo.version(version, isAtLeast: 3, 12) {
            findings.append(
                .warning(
                    "RabbitMQ \(version) ignores the queues' own acknowledgement timeout, and the server's cannot be read "
                        + "from here: make sure that rabbitmq.conf has `consumer_timeout = 7200000`, else deliveries are "
                        + "taken back after 30 minutes"))
        }
        return findings
    }

    /// An alarm is told to whoever publishes only, so a message that no queue takes is published.
    private func alarm() async throws(AMQPError) -> Finding {
        let reason = Mutex<String?>(nil)
        let box = Box(reason)
        let connection = AMQPConnection(name: "amqp-doctor") { event in
            if case .blocked(let reason) = event { box.value.withLock { $0 = reason } }
        }
        try await connection.open(url: url, connectionName: "gendispatcher doctor", confirms: true)
        let outcome = await connection.publish(.probe, within: .seconds(3))
        await connection.close()
        if let reason = box.value.withLock({ $0 }) {
            return .fault(
                "RabbitMQ takes no messages: \(reason); see `rabbitmqctl status`, free memory or disk, or raise "
                    + "`vm_memory_high_watermark` or lower `disk_free_limit`")
        }
        guard case .returned = outcome else {
            return .fault("RabbitMQ did not answer a probe within 3 s: it may be blocked; see `rabbitmqctl status`")
        }
        return .fine("messages are taken")
    }

    private final class Box: Sendable {
        let value: Mutex<String?>
        init(_ value: consuming sending Mutex<String?>) { self.value = value }
    }

    private func declare() async -> Finding {
        let publisher = AMQPPublisher(url: url, name: "gendispatcher doctor")
        let finding: Finding
        do throws(AMQPError) {
            let connection = try await publisher.usable()
            _ = try await connection.declare(Topology(pools: pools), onlyMissing: false)
            finding = .fine("exchanges, queues and bindings are declared")
        } catch {
            finding = .fault(
                "\(error.message); a queue with other arguments must be emptied and deleted first: `rabbitmqctl "
                    + "delete_queue NAME`")
        }
        await publisher.close()
        return finding
    }
}
