import Foundation
import GenShared
import Synchronization

extension FaultStage {
    /// Waits until every job has ended and every watcher has seen it, stops the workers, writes down how all stands,
    /// and checks the history.
    /// - Parameters:
    ///   - limit: how long healing may take.
    ///   - drains: whether the pool's queues must be empty at the end.
    /// - Throws: `FaultError` with what was violated.
    @discardableResult
    package func settle(
        within limit: Duration = .seconds(90), rules: HistoryChecker.Rules = HistoryChecker.Rules(),
        drains: Bool = true
    ) async throws -> HistoryChecker.Summary {
        let isDone = await waitForWatchers(within: limit)
        // A copy of a job that has ended may still be on its way to a worker, which throws it away.
        if drains { try await waitForQueues() }
        if drains { try await stopWorkers() }
        try await writeFinals()
        if drains { try await writeQueues() }
        let (summary, violations) = try HistoryChecker.check(history.path, rules)
        guard violations.isEmpty else {
            let shown = violations.prefix(12).map { "  \($0)" }.joined(separator: "\n")
            throw FaultError(
                "\(name): \(violations.count) violations\(isDone ? "" : ", not healed in time"):\n\(shown)")
        }
        guard isDone else { throw FaultError("\(name): watchers did not end within \(limit)") }
        return summary
    }

    /// - Returns: false when the time was over first.
    private func waitForWatchers(within limit: Duration) async -> Bool {
        let watching = state.withLock { state in
            defer { state.watching = [] }
            return state.watching
        }
        // Cancels what is left over when the time is over, which ends the wait.
        let timer = Task {
            do { try await Task.sleep(for: limit) } catch { return false }
            for task in watching { task.cancel() }
            return true
        }
        for task in watching { await task.value }
        timer.cancel()
        return await !timer.value
    }

    /// Asks all workers to drain, and waits: what they held is in its queue then.
    package func stopWorkers() async throws {
        let workers = state.withLock { state in
            defer { state.workers = [] }
            return state.workers
        }
        for worker in workers {
            worker.program.signal(SIGCONT)
            worker.program.signal(SIGTERM)
        }
        for worker in workers {
            do { try await worker.program.end(within: .seconds(40)) } catch {
                worker.program.signal(SIGKILL)
                throw error
            }
        }
    }

    private func writeFinals() async throws {
        let jobs = Set(state.withLock { $0.jobs })
        let connection = RedisConnection(url: try servers.redis(), name: "fault-check")
        for id in jobs {
            if let final = try await Self.final(id, connection) { history.add(.final(final)) }
        }
        let entries = try await connection.send(RedisCommand("XREVRANGE", JobKeys.done, "+", "-", "COUNT", "20000"))
        for entry in entries.array ?? [] {
            let words = entry.array?.last?.array?.compactMap(\.string) ?? []
            let pairs = Dictionary(
                zip(
                    words.enumerated().filter { $0.offset % 2 == 0 }.map(\.element),
                    words.enumerated().filter { $0.offset % 2 == 1 }.map(\.element))
            ) { $1 }
            guard let job = pairs["id"].flatMap({ JobID($0) }), jobs.contains(job), let state = pairs["state"] else {
                continue
            }
            history.add(.done(job: job.rawValue, state: state))
        }
        await connection.close()
    }

    /// A job's record and log as they stand in Redis; `nil` where there is no record.
    static func final(_ id: JobID, _ connection: RedisConnection) async throws -> HistoryEntry.Final? {
        let keys = JobKeys(id)
        let fields = try await connection.send(RedisCommand("HMGET", keys.record, "state", "attempt", "result"))
        guard let values = fields.array, values.count == 3, let state = values[0].string else { return nil }
        let entries = try await connection.send(RedisCommand("XRANGE", keys.events, "-", "+"))
        let log = (entries.array ?? []).compactMap { $0.array?.last?.array?.last?.string }
        return HistoryEntry.Final(
            job: id.rawValue, state: state, attempt: Int(values[1].integer ?? 0), result: values[2].string, log: log)
    }

    private func writeQueues() async throws {
        for queue in queues { history.add(.queue(name: queue, messages: try await left(in: queue))) }
    }

    /// Waits until the pool's queues hold nothing, nor have handed anything out that is not acknowledged.
    ///
    /// A connection that died unnoticed keeps its deliveries until RabbitMQ misses its heartbeats. What is left is
    /// counted later.
    private func waitForQueues() async throws {
        let deadline = ContinuousClock.now + .seconds(40)
        while ContinuousClock.now < deadline {
            let lines = try await servers.rabbitmq.control("list_queues", "--quiet", "name", "messages")
            let counts = lines.split(separator: "\n").filter { $0.contains(".\(pool).") }
            if counts.allSatisfy({ $0.split(separator: "\t").last == "0" }) { return }
            try await Task.sleep(for: .milliseconds(500))
        }
    }

    private var queues: [String] { Lane.allCases.map { Topology.queue(pool: pool, lane: $0) } }

    /// Counts what is left in a queue when it has had some time: a count may be a moment behind, too.
    private func left(in queue: String) async throws -> Int {
        var left = 0
        for turn in 0..<80 {
            if turn > 0 { try await Task.sleep(for: .milliseconds(250)) }
            left = try await messages(in: queue)
            if left == 0 { break }
        }
        return left
    }

    /// Messages in a queue that are ready; 0 where there is none of that name.
    package func messages(in queue: String) async throws -> Int {
        let connection = AMQPConnection(name: "fault-check") { _ in }
        try await connection.open(url: try servers.amqp(), connectionName: "fault-check", confirms: false)
        let count = try await connection.queueCounts(queue)?.ready ?? 0
        await connection.close()
        return count
    }
}
