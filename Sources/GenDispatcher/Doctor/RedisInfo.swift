/// What Redis says of itself by `INFO`, and what that means for us.
struct RedisInfo: Sendable {
    private let fields: [String: String]

    init(_ text: String) {
        var fields: [String: String] = [:]
        for line in text.split(whereSeparator: \.isNewline) {
            guard let colon = line.firstIndex(of: ":") else { continue }
            fields[String(line[..<colon])] = String(line[line.index(after: colon)...])
        }
        self.fields = fields
    }

    var version: String { fields["redis_version"] ?? "?" }

    /// Whether the version is at least that; one that cannot be read is not.
    static func version(_ text: String, isAtLeast major: Int, _ minor: Int) -> Bool {
        let parts = text.split(separator: ".").prefix(2).compactMap { Int($0) }
        guard parts.count == 2 else { return false }
        return (parts[0], parts[1]) >= (major, minor)
    }

    func findings() -> [Finding] {
        [judgeVersion(), judgeRole(), judgePolicy(), judgeMemory(), judgeClients()].compactMap { $0 } + judgeDisk()
    }

    private func judgeVersion() -> Finding? {
        guard !Self.version(version, isAtLeast: 6, 2) else { return nil }
        return .fault("Redis \(version) is too old: 6.2 or later is needed")
    }

    private func judgeRole() -> Finding? {
        if fields["loading"] == "1" { return .warning("Redis is still loading its data: wait and look again") }
        guard let role = fields["role"], role != "master" else { return nil }
        return .fault("this Redis is a replica; point GEN_REDIS_URL at the primary")
    }

    private func judgePolicy() -> Finding? {
        guard let policy = fields["maxmemory_policy"] else { return nil }
        if policy == "noeviction" { return .fine("eviction policy noeviction") }
        return .fault(
            "eviction policy is \(policy): Redis may drop records of running jobs; set `maxmemory-policy noeviction`")
    }

    private func judgeMemory() -> Finding? {
        guard let used = number("used_memory") else { return nil }
        let usage = Self.mebibytes(used)
        if let most = number("maxmemory"), most > 0 {
            let text = "memory: \(usage) of \(Self.mebibytes(most)) MiB used"
            switch used / most {
            case ..<0.8: return .fine(text)
            case ..<0.95: return .warning("\(text): at 100 % every write is refused; raise `maxmemory`")
            default: return .fault("\(text): writes are refused now or soon; raise `maxmemory`")
            }
        }
        guard let machine = number("total_system_memory"), machine > 0, used / machine >= 0.8 else {
            return .fine("memory: \(usage) MiB used, no `maxmemory`")
        }
        return .warning(
            "memory: \(usage) MiB used, most of the machine's, and no `maxmemory`: the kernel may end Redis; set "
                + "`maxmemory`")
    }

    private func judgeClients() -> Finding? {
        // Servers before 7.0 do not tell the limit here.
        guard let connected = number("connected_clients"), let most = number("maxclients"), most > 0 else { return nil }
        let text = "clients: \(Int(connected)) of \(Int(most))"
        guard connected / most >= 0.8 else { return .fine(text) }
        return .warning("\(text): soon new ones are refused; raise `maxclients`")
    }

    private func judgeDisk() -> [Finding] {
        var findings: [Finding] = []
        if let isOn = fields["aof_enabled"] {
            findings.append(
                isOn == "1"
                    ? .fine("append-only file on")
                    : .warning(
                        "no append-only file: a restart of Redis loses jobs' records; set `appendonly yes`"))
        }
        let writes = [
            ("aof_last_write_status", "the append-only file"), ("rdb_last_bgsave_status", "the snapshot"),
            ("aof_last_bgrewrite_status", "the rewritten append-only file"),
        ]
        for (field, what) in writes {
            guard let status = fields[field], status != "ok" else { continue }
            findings.append(
                .fault(
                    "Redis could not write \(what) (\(field):\(status)), so it may refuse every write (MISCONF): look at "
                        + "its disk's space and rights, and at its log"))
        }
        return findings
    }

    private func number(_ name: String) -> Double? { fields[name].flatMap { Double($0) } }
    private static func mebibytes(_ bytes: Double) -> String { "\((bytes / 1_048_576 * 10).rounded() / 10)" }
}
