extension Client {
    /// The pools that workers serve which were seen in the last 30 s.
    /// - Throws: `StoreError`.
    public func livePools() async throws -> Set<String> {
        let since = Timestamp.now.milliseconds - 30_000
        let range = RedisCommand("ZRANGEBYSCORE", JobKeys.workers, "\(since)", "+inf")
        let workers = try await store.reply(to: range).array ?? []
        var pools: Set<String> = []
        for worker in workers.compactMap(\.string) {
            let reply = try await store.reply(to: RedisCommand("HGET", JobKeys.worker(worker), "pools"))
            for pool in (reply.string ?? "").split(separator: ",") { pools.insert(String(pool)) }
        }
        return pools
    }
}
