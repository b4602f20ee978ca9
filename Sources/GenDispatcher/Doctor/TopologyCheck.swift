import GenShared

/// Looks whether exchanges and queues are there, whether lanes are served, and what lies where it should not.
struct TopologyCheck {
    let browser: AMQPBrowser
    let pools: [String]

    func run() async throws(AMQPError) -> [Finding] {
        var findings: [Finding] = []
        let topology = Topology(pools: pools)
        var missing: [String] = []
        for exchange in topology.exchanges where try await !browser.exists(exchange) { missing.append(exchange.name) }
        findings.append(
            missing.isEmpty
                ? .fine("all \(topology.exchanges.count) exchanges are there")
                : .fault("there is no exchange \(missing.joined(separator: ", ")); run `gendispatcher setup`"))
        for pool in pools {
            for lane in Lane.allCases { findings.append(try await judge(pool, lane)) }
        }
        for tier in Topology.tiers {
            let name = "gen.retry.v1.\(tier.name)"
            guard try await browser.counts(of: name) == nil else { continue }
            findings.append(.fault("there is no queue \(name); run `gendispatcher setup`"))
        }
        findings.append(
            try await judgeDepth(
                Topology.dropped,
                "RabbitMQ gave up on these; a worker marks their jobs as failed: start `genworker run`"))
        findings.append(try await judgeDepth(Topology.dead, "see them with `gendispatcher dead list`"))
        return findings
    }

    private func judge(_ pool: String, _ lane: Lane) async throws(AMQPError) -> Finding {
        let name = Topology.queue(pool: pool, lane: lane)
        guard let counts = try await browser.counts(of: name) else {
            return .fault("there is no queue \(name); run `gendispatcher setup --pool \(pool)`")
        }
        let text = "\(name): \(counts.ready) ready, \(counts.consumers) consumer\(counts.consumers == 1 ? "" : "s")"
        // Batch consumers come and go with free slots; an interactive queue without any is not served.
        guard counts.consumers == 0, lane == .interactive else { return .fine(text) }
        return .warning("\(text): no worker serves pool \"\(pool)\"; start `genworker run`")
    }

    private func judgeDepth(_ name: String, _ advice: String) async throws(AMQPError) -> Finding {
        guard let counts = try await browser.counts(of: name) else {
            return .fault("there is no queue \(name); run `gendispatcher setup`")
        }
        guard counts.ready > 0 else { return .fine("\(name): empty") }
        return .warning("\(name): \(counts.ready) message\(counts.ready == 1 ? "" : "s"); \(advice)")
    }
}
