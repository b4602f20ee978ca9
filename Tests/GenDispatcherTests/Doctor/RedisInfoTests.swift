import Testing

@testable import GenDispatcher

/// What Redis' own figures mean.
@Suite("Redis figures")
struct RedisInfoTests {
    private let healthy = [
        "redis_version:7.0.15", "role:master", "maxmemory_policy:noeviction", "used_memory:1000", "maxmemory:0",
        "total_system_memory:100000", "connected_clients:3", "maxclients:100", "aof_enabled:1",
        "aof_last_write_status:ok", "rdb_last_bgsave_status:ok",
    ]

    private func findings(_ changes: String...) -> [Finding] {
        let names = changes.map { $0.prefix { $0 != ":" } }
        let lines = healthy.filter { line in !names.contains(line.prefix { $0 != ":" }) } + changes
        return RedisInfo("# Server\r\n" + lines.joined(separator: "\r\n") + "\r\n").findings()
    }

    @Test("a healthy server is fine throughout")
    func fine() {
        #expect(findings().allSatisfy { $0.severity == .fine })
        #expect(findings().count == 4)
    }

    @Test(
        "what loses jobs is a fault, and says what mends it",
        arguments: [
            ("redis_version:6.0.16", "6.2"), ("role:slave", "primary"), ("maxmemory_policy:allkeys-lru", "noeviction"),
            ("aof_last_write_status:err", "MISCONF"), ("rdb_last_bgsave_status:err", "MISCONF"),
            ("maxmemory:1010", "raise `maxmemory`"),
        ])
    func faults(line: String, says: String) {
        let faults = findings(line).filter { $0.severity == .fault }
        #expect(faults.count == 1 && faults[0].text.contains(says))
    }

    @Test(
        "what may lose jobs is a warning",
        arguments: [
            ("maxmemory:1200", "raise"), ("aof_enabled:0", "appendonly yes"), ("maxclients:3", "maxclients"),
            ("used_memory:90000", "maxmemory"), ("loading:1", "loading"),
        ])
    func warnings(line: String, says: String) {
        let warnings = findings(line).filter { $0.severity == .warning }
        #expect(warnings.count == 1 && warnings[0].text.contains(says))
    }

    @Test(
        "an old RabbitMQ's timeout is a warning with the setting",
        arguments: [("3.10.8", 1), ("3.12.0", 0), ("4.1.2", 0)])
    func broker(version: String, count: Int) {
        let findings = BrokerCheck.judge(version: version)
        #expect(findings.count == count && findings.allSatisfy { $0.text.contains("consumer_timeout = 7200000") })
    }
}
