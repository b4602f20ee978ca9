import GenShared

/// Shows in Redis that this worker lives: what it serves, what it runs, when it was last seen.
struct WorkerPresence: Sendable {
    let id: String
    let connection: RedisConnection
    let registry: JobRegistry
    let readiness: Readiness
    let pools: [WorkerConfiguration.Pool]
    let backends: [String: any GenerationBackend]

    private static let interval: Duration = .seconds(10)
    /// A worker that was not seen for that long is gone.
    private static let lifetime = 30

    func start() async {
        beat()
        await connection.every(Self.interval) { beat() }
    }

    /// Says that it is gone.
    func end() async {
        do {
            _ = try await connection.send(RedisCommand("DEL", JobKeys.worker(id)))
            _ = try await connection.send(RedisCommand("ZREM", JobKeys.workers, id))
        } catch {
            // It runs out by itself.
            Log.debug("presence_not_removed", ["reason": .string(error.message)])
        }
    }

    private func beat() {
        let now = Timestamp.now.milliseconds
        var record = RedisCommand("HSET", JobKeys.worker(id))
        let identity = HostIdentity.current
        let slots = pools.reduce(0) { $0 + $1.slots }
        for (name, value) in [
            ("host", identity.host), ("pid", "\(identity.pid)"), ("version", GenVersion.current),
            ("pools", pools.map(\.name).joined(separator: ",")), ("slots", "\(slots)"),
            ("running", registry.ids.map(\.rawValue).joined(separator: ",")), ("seen", "\(now)"),
            ("ready", readiness.reason == nil ? "1" : "0"), ("not_ready_because", readiness.reason ?? ""),
            ("backends", backends.values.map { "\($0.name)=\($0.model ?? "?")" }.sorted().joined(separator: ",")),
        ] {
            record.append(name)
            record.append(value)
        }
        for command in [
            record, RedisCommand("EXPIRE", JobKeys.worker(id), "\(Self.lifetime)"),
            RedisCommand("ZADD", JobKeys.workers, "\(now)", id),
            // Those that died without a word.
            RedisCommand("ZREMRANGEBYSCORE", JobKeys.workers, "-inf", "\(now - 300_000)"),
        ] {
            connection.post(command) { result in
                if case .failure(let error) = result {
                    Log.debug("presence_not_written", ["reason": .string(error.message)])
                }
            }
        }
    }
}
