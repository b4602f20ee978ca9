import GenShared
import Synchronization

/// Takes what RabbitMQ itself gave up on: messages that came back to their queue too often.
///
/// The job is ended and a copy goes to the dead queue. One that somebody runs all the same, under a live lease, goes
/// back to its lane by way of a tier: its owner will end it, and if the owner does not live to do so, the copy is there.
final class DroppedConsumer: Sendable {
    static let tag = Topology.dropped
    /// A few at once: each is two round trips, and there should be none.
    private static let prefetch = 4
    /// How long a message is kept that cannot be put where it belongs, before it is handed back.
    private static let pause: Duration = .seconds(5)

    private let store: any SubmissionStore
    private let executions: any ExecutionStore
    private let router: any MessageRouter
    private let limits: JobLimits
    private let scheduler: any Scheduler
    private let origin = Mutex<ConnectionReference?>(nil)

    init(
        store: any SubmissionStore, executions: any ExecutionStore, router: any MessageRouter, limits: JobLimits,
        scheduler: any Scheduler = SystemScheduler()
    ) {
        self.store = store
        self.executions = executions
        self.router = router
        self.limits = limits
        self.scheduler = scheduler
    }

    /// Begins to consume.
    /// - Throws: `AMQPError`.
    func attach(to connection: any ConsumerConnection) async throws(AMQPError) {
        let reference = ConnectionReference()
        reference.set(connection)
        origin.withLock { $0 = reference }
        try await connection.consume(queue: Topology.dropped, tag: Self.tag, prefetch: Self.prefetch)
    }

    /// RabbitMQ has ended the consumer: its queue was deleted, say.
    func cancelled() {
        guard let connection = origin.withLock({ $0 })?.connection else { return }
        Log.warning("consumer_cancelled", ["queue": .string(Topology.dropped)])
        // A task of its own: this is called on the connection's thread. It ends with two calls that are bounded.
        scheduler.start { [self] in
            do throws(AMQPError) {
                _ = try await connection.declare(Topology(pools: []), onlyMissing: true)
                try await attach(to: connection)
            } catch {
                // The connection is lost with the call; whoever makes the next attaches again.
                Log.error("consume_failed", ["queue": .string(Topology.dropped), "reason": .string(error.message)])
            }
        }
    }

    /// Sees to one message; it is acknowledged when it is safe where it belongs.
    func take(_ delivery: AMQPDelivery, from connection: any ConsumerConnection) {
        // One task for each of the few that the prefetch lets in.
        scheduler.start { [self] in
            if await settle(delivery) { return connection.acknowledge(delivery.tag) }
            await scheduler.sleepUncancelled(for: Self.pause)
            connection.requeue(delivery.tag)
        }
    }

    private func settle(_ delivery: AMQPDelivery) async -> Bool {
        // The key of the lane survives; without one there is no way back to it.
        let parts = delivery.routingKey.split(separator: ".", omittingEmptySubsequences: false)
        let lane = parts.count == 2 ? Lane(rawValue: String(parts[1])) : nil
        let message = JobDelivery(
            delivery, pool: parts.first.map { String($0) } ?? "", lane: lane ?? .interactive)
        let detail = "RabbitMQ gave the message up: it came back to its queue too often (delivery limit)"
        guard let id = message.salvagedID else { return await router.bury(message, reason: "dropped", detail: detail) }
        do {
            let job = try? message.decode(limits)  // What is no job still has an id whose record is ended.
            let ended = try await store.reject(
                id, failure: JobFailure(.dropped, detail),
                rejected: RejectedMessage(
                    body: message.body, kind: job?.kind.rawValue ?? message.type ?? "", pool: message.pool,
                    lane: message.lane))
            guard let ended else {
                // Under a live lease. Without a lane there is no way back, only the dead queue.
                return lane == nil
                    ? await router.bury(message, reason: "dropped", detail: detail)
                    : await router.retry(message, after: .seconds(10))
            }
            // Completed, cancelled or expired before: nothing is left to be done for it. Failed, now or just before a
            // crash of ours: the dead queue shall have it.
            guard ended == .failed else { return true }
            Log.error("job_dropped", ["job": .string(id.rawValue)])
            guard await router.bury(message, reason: "dropped", detail: detail) else { return false }
            try await executions.announce(
                id, state: ended, kind: job?.kind.rawValue ?? message.type ?? "", tenant: job?.tenant ?? "default")
            return true
        } catch {
            Log.warning("dropped_not_settled", ["job": .string(id.rawValue), "reason": .string("\(error)")])
            return false
        }
    }
}
