/// A job that waits for a worker, as far as its record says.
package struct OpenRecord: Sendable, Equatable {
    /// Where its message belongs.
    package struct Route: Hashable, Sendable {
        package var pool: String
        package var lane: Lane

        package init(pool: String, lane: Lane) {
            self.pool = pool
            self.lane = lane
        }

        package var queue: String { Topology.queue(pool: pool, lane: lane) }
    }

    package var id: JobID
    package var route: Route
    /// Since when a worker could have begun it.
    package var since: Timestamp

    package init(id: JobID, route: Route, since: Timestamp) {
        self.id = id
        self.route = route
        self.since = since
    }

    /// Whether it has waited for over a minute: a younger one's message may still be on its way.
    package func isStale(at now: Timestamp) -> Bool { now.milliseconds - since.milliseconds > 60_000 }
}

extension RedisJobStore {
    /// Keys looked at in one step: each blocks Redis for well under a millisecond.
    private static let step = "500"

    /// The time of day by Redis' clock, which wrote the records' times.
    /// - Throws: `StoreError`.
    package func time() async throws(StoreError) -> Timestamp {
        let reply = try await reply(to: RedisCommand("TIME")).array ?? []
        let parts = reply.compactMap(\.integer)
        guard parts.count == 2 else {
            throw StoreError("Redis did not tell the time", isCertainlyUndone: true, isRetryable: false)
        }
        return Timestamp(milliseconds: parts[0] * 1000 + parts[1] / 1000)
    }

    /// Records of jobs that no worker runs: queued, retrying, or running under a lease that has run out.
    ///
    /// A record may come twice, as SCAN goes; one that is there all the time comes at least once.
    /// - Parameter cursor: `0` for the first page.
    /// - Returns: the page, and where the next begins; `nil` after the last.
    /// - Throws: `StoreError`.
    package func openRecords(
        from cursor: String, now: Timestamp
    ) async throws -> (records: [OpenRecord], next: String?) {
        let scan = RedisCommand("SCAN", cursor, "MATCH", "gen:{*}:job", "COUNT", Self.step, "TYPE", "hash")
        guard let reply = try await reply(to: scan).array, reply.count == 2, let next = reply[0].string,
            let keys = reply[1].array
        else { throw StoreError("SCAN answered no page", isCertainlyUndone: true, isRetryable: false) }
        let ids = keys.compactMap(\.string).compactMap {
            JobID(String($0.dropFirst("gen:{".count).dropLast("}:job".count)))
        }
        // All at once: commands that are under way together go out in one write.
        let records: [OpenRecord] = try await withThrowingTaskGroup(of: OpenRecord?.self) { group in
            for id in ids { group.addTask { try await openRecord(id, now) } }
            return try await group.reduce(into: []) { if let record = $1 { $0.append(record) } }
        }
        return (records, next == "0" ? nil : next)
    }

    private func openRecord(_ id: JobID, _ now: Timestamp) async throws(StoreError) -> OpenRecord? {
        let command = RedisCommand(
            "HMGET", JobKeys(id).record, "state", "pool", "lane", "queued_at", "not_before", "lease_until")
        let values = try await reply(to: command).array ?? []
        guard values.count == 6, let state = values[0].string.flatMap(JobState.init(rawValue:)), !state.isTerminal,
            let pool = values[1].string, Job.isPoolName(pool), let lane = values[2].string.flatMap(Lane.init(rawValue:))
        else { return nil }
        let since = values[3...].compactMap(\.integer).max() ?? 0
        if state == .running, (values[5].integer ?? 0) > now.milliseconds { return nil }
        return OpenRecord(
            id: id, route: OpenRecord.Route(pool: pool, lane: lane), since: Timestamp(milliseconds: since))
    }
}
