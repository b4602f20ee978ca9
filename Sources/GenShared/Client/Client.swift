/// The library's face: submit jobs, watch them, cancel them, look at them.
///
/// One client serves any number of tasks: it keeps one publishing connection to RabbitMQ, and one command and one
/// subscribing connection to Redis, made on first use. Safe to share.
public final class Client: Sendable {
    let store: RedisJobStore
    let publisher: AMQPPublisher
    let jobPublisher: AMQPJobPublisher
    private let connection: RedisConnection
    private let subscriber: RedisSubscriber
    private let hub: WatchHub
    let limits: JobLimits

    /// A client for these servers.
    ///
    /// Nothing is connected yet.
    /// - Parameter name: shown in the servers' lists of connections.
    public init(amqp: AMQPURL, redis: RedisURL, limits: JobLimits = JobLimits(), name: String = "gencluster client") {
        ProcessSetup.run()
        self.limits = limits
        // Redis takes no spaces in a connection's name.
        let redisName = String(name.map { $0.isWhitespace ? "-" : $0 })
        connection = RedisConnection(url: redis, name: redisName, scripts: RedisScript.all)
        subscriber = RedisSubscriber(url: redis, name: redisName)
        store = RedisJobStore(connection: connection)
        publisher = AMQPPublisher(url: amqp, name: name)
        jobPublisher = AMQPJobPublisher(publisher)
        hub = WatchHub(store: store, channels: subscriber, scheduler: SystemScheduler()) {
            [connection] interval, body in
            await connection.every(interval, body)
        }
    }

    /// The events of a job, from any point on.
    /// - Parameters:
    ///   - id: the job.
    ///   - start: the last event that was seen before; its successors follow. `.origin` shows everything.
    ///   - waitForJob: how long a job that does not exist yet is waited for.
    ///   - onTrouble: hears of lost connections, which heal by themselves; must not block.
    public func watch(
        _ id: JobID, from start: EventID = .origin, waitForJob: Duration = .zero,
        onTrouble: (@Sendable (String) -> Void)? = nil
    ) -> JobWatch {
        JobWatch(hub: hub, id: id, start: start, waitForJob: waitForJob, onTrouble: onTrouble)
    }

    /// Asks for a job's end; idempotent.
    ///
    /// Where a worker runs it, the end comes as an event a moment later.
    /// - Parameter by: who asks; shown in the `cancelled` event.
    /// - Throws: `StoreError`. When it is thrown, the cancel may or may not have been taken: repeat it.
    public func cancel(_ id: JobID, by: String) async throws -> CancelReply {
        try await store.cancel(id, by: by)
    }

    /// What is known of a job; `nil` where there is none, or no longer.
    ///
    /// Marks a job as expired whose time is over.
    /// - Throws: `StoreError`.
    public func record(_ id: JobID) async throws -> JobRecord? {
        let record = try await store.record(id)
        guard let record, let expiresAt = record.expiresAt, expiresAt <= .now,
            record.state == .queued || record.state == .retrying
        else { return record }
        try await store.expire(id)
        return try await store.record(id)
    }

    /// Closes the connections; calls that are under way fail.
    public func close() async {
        await publisher.close()
        await subscriber.close()
        await connection.close()
    }
}
