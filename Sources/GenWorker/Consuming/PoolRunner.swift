import GenShared
import Synchronization

/// Runs one pool: takes its deliveries, gives them slots, acknowledges them when they are done with.
///
/// One loop takes everything that happens, in order, and does what the lane machine says; jobs run in tasks of their
/// own, one for each slot.
final class PoolRunner: Sendable {
    enum Event: Sendable {
        case connected(AMQPConnection)
        case disconnected
        case delivery(AMQPDelivery, Lane, AMQPConnection)
        case consumerCancelled(Lane)
        case checked(LaneMachine.Ticket, isOpen: Bool)
        case claimed(LaneMachine.Ticket, isPreemptable: Bool)
        case finished(LaneMachine.Ticket, Disposition)
        case tick
        case drain
        /// Stop what still runs, at no cost to it.
        case abort
    }

    /// A delivery with the connection on which alone it can be acknowledged.
    private struct Held {
        var tag: UInt64
        var connection: AMQPConnection
        let delivery: JobDelivery
        let job: Job
        let running: RunningJob
    }

    let name: String
    let slots: Int
    private let services: ExecutionServices
    private let lookUp: any SubmissionStore
    private let events: AsyncStream<Event>
    /// Bounded by the prefetch of the consumers and by the slots.
    private let inbox: AsyncStream<Event>.Continuation
    private let registry: JobRegistry

    init(
        name: String, slots: Int, batchMinSlots: Int, services: ExecutionServices, lookUp: any SubmissionStore,
        registry: JobRegistry
    ) {
        self.name = name
        self.slots = slots
        self.services = services
        self.lookUp = lookUp
        self.registry = registry
        self.batchMinSlots = batchMinSlots
        (events, inbox) = AsyncStream.makeStream(of: Event.self)
    }

    private let batchMinSlots: Int

    /// Tells the pool what happened; from any thread.
    func post(_ event: Event) { inbox.yield(event) }

    /// The consumer tag of a lane; names the lane when a delivery comes.
    func consumerTag(_ lane: Lane) -> String { Topology.routingKey(pool: name, lane: lane) }

    /// Runs until it was drained and the last job has ended.
    func run() async {
        var machine = LaneMachine(slots: slots, batchMinSlots: batchMinSlots)
        var held: [LaneMachine.Ticket: Held] = [:]
        var connection: AMQPConnection?
        var nextTicket: UInt64 = 0
        var timer: Task<Void, Never>?
        var timerAt: ContinuousClock.Instant?
        var isDraining = false
        for await event in events {
            let now = ContinuousClock.now
            var actions: [LaneMachine.Action] = []
            switch event {
            case .connected(let fresh):
                connection = fresh
                actions = machine.handle(.connected, at: now)
            case .disconnected:
                connection = nil
                actions = machine.handle(.disconnected, at: now)
                // What only waited is delivered again by the broker.
                held = held.filter { registry.isRunning($0.value.job.id) }
            case .delivery(let delivery, let lane, let origin):
                guard let ticket = await accept(delivery, lane, origin, &held, &nextTicket) else { continue }
                actions = machine.handle(.delivered(ticket, lane), at: now)
            case .consumerCancelled(let lane):
                Log.warning("consumer_cancelled", ["pool": .string(name), "lane": .string(lane.rawValue)])
                actions = machine.handle(.consumerCancelled(lane), at: now)
            case .checked(let ticket, let isOpen): actions = machine.handle(.checked(ticket, isOpen: isOpen), at: now)
            case .claimed(let ticket, let isPreemptable):
                actions = machine.handle(.claimed(ticket, isPreemptable: isPreemptable), at: now)
            case .finished(let ticket, let disposition):
                settle(held.removeValue(forKey: ticket), disposition)
                if case .requeueAndPause(let reason) = disposition {
                    Log.warning("consuming_paused", ["pool": .string(name), "reason": .string(reason)])
                    actions = machine.handle(.pause(until: now + .seconds(1)), at: now)
                }
                actions += machine.handle(.finished(ticket), at: now)
            case .tick: actions = machine.handle(.tick, at: now)
            case .drain:
                isDraining = true
                actions = machine.handle(.drain, at: now)
            case .abort:
                for entry in held.values { entry.running.abort(.shutdown) }
            }
            for action in actions { await perform(action, &held, connection) }
            if isDraining, machine.isIdle { break }
            if let due = machine.nextTick(after: now), timerAt.map({ due < $0 || $0 <= now }) ?? true {
                timer?.cancel()
                timerAt = due
                // A timer of the loop's own: nobody awaits it.
                timer = Task { [inbox] in
                    do { try await Task.sleep(until: due) } catch { return }
                    inbox.yield(.tick)
                }
            }
        }
        timer?.cancel()
    }

    // MARK: Deliveries

    /// Reads a delivery.
    ///
    /// What is no job goes to the dead queue; what runs here already only changes its tag.
    private func accept(
        _ delivery: AMQPDelivery, _ lane: Lane, _ origin: AMQPConnection, _ held: inout [LaneMachine.Ticket: Held],
        _ nextTicket: inout UInt64
    ) async -> LaneMachine.Ticket? {
        let message = JobDelivery(
            pool: name, lane: lane, body: delivery.body, messageID: delivery.messageID, type: delivery.type,
            contentType: delivery.contentType, contentEncoding: delivery.contentEncoding,
            traceParent: delivery.traceParent)
        let job: Job
        do throws(JobRejection) { job = try message.decode(services.limits) } catch {
            // The loop goes on meanwhile: the broker may take its time to confirm the copy.
            Task { await reject(message, error, delivery.tag, origin) }
            return nil
        }
        if let twin = held.first(where: { $0.value.job.id == job.id })?.key {
            // The broker lost our connection and delivers again what still runs here: the new tag counts. A second
            // message of the job, on the same connection, stands for the first, which would stay unacknowledged.
            if let before = held[twin], before.connection === origin { origin.acknowledge(before.tag) }
            held[twin]?.tag = delivery.tag
            held[twin]?.connection = origin
            return nil
        }
        nextTicket += 1
        let ticket = LaneMachine.Ticket(number: nextTicket)
        held[ticket] = Held(
            tag: delivery.tag, connection: origin, delivery: message, job: job, running: RunningJob(id: job.id))
        return ticket
    }

    /// A message that is no job of ours: into the dead queue, and the end of its record, if it names one.
    private func reject(
        _ message: JobDelivery, _ rejection: JobRejection, _ tag: UInt64, _ origin: AMQPConnection
    ) async {
        Log.warning(
            "message_rejected",
            ["reason": .string(rejection.code.rawValue), "detail": .string(rejection.description)])
        guard await services.router.bury(message, reason: rejection.code.rawValue, detail: rejection.description)
        else { return origin.requeue(tag) }
        if rejection.code != .badID, let id = message.salvagedID {
            let failure = JobFailure(.rejected, "the message is no job: \(rejection)")
            do {
                try await lookUp.reject(id, failure: failure, body: message.body, kind: message.type ?? "")
            } catch {
                return origin.requeue(tag)
            }
        }
        origin.acknowledge(tag)
    }

    private func perform(
        _ action: LaneMachine.Action, _ held: inout [LaneMachine.Ticket: Held], _ connection: AMQPConnection?
    ) async {
        switch action {
        case .start(let ticket):
            if let entry = held[ticket] { start(ticket, entry) }
        case .requeue(let ticket): settle(held.removeValue(forKey: ticket), .requeue)
        case .acknowledge(let ticket): settle(held.removeValue(forKey: ticket), .acknowledge)
        case .preempt(let ticket): held[ticket]?.running.abort(.preempted)
        case .check(let ticket):
            guard let entry = held[ticket] else { return }
            // The loop goes on meanwhile; the answer comes back as an event.
            Task { await check(ticket, entry.job) }
        case .attach(let lane, let prefetch): await attach(lane, prefetch, connection)
        case .detach(let lane):
            do { try await connection?.cancelConsumer(tag: consumerTag(lane)) } catch {
                // The connection is gone; its loss is on its way as an event of its own.
                Log.debug("detach_failed", ["reason": .string(error.message)])
            }
        }
    }

    private func attach(_ lane: Lane, _ prefetch: Int, _ connection: AMQPConnection?) async {
        do {
            try await connection?.consume(
                queue: Topology.queue(pool: name, lane: lane), tag: consumerTag(lane), prefetch: prefetch)
        } catch {
            Log.error(
                "consume_failed",
                ["pool": .string(name), "lane": .string(lane.rawValue), "reason": .string(error.message)])
        }
    }

    private func check(_ ticket: LaneMachine.Ticket, _ job: Job) async {
        // A store that does not answer leaves the job open: its claim will tell.
        let record = try? await lookUp.record(job.id)
        let isEnded = record?.state.isTerminal ?? false
        if isEnded, let state = record?.state {
            do {
                try await services.store.announce(job.id, state: state, kind: job.kind, tenant: job.tenant)
            } catch {
                post(.checked(ticket, isOpen: true))
                return
            }
        }
        post(.checked(ticket, isOpen: !isEnded))
    }

    private func start(_ ticket: LaneMachine.Ticket, _ entry: Held) {
        let execution = JobExecution(
            services: services, running: entry.running,
            onClaim: { [inbox] isPreemptable in inbox.yield(.claimed(ticket, isPreemptable: isPreemptable)) },
            delivery: entry.delivery)
        registry.add(entry.running)
        // One task a slot; it ends with the job, whose end the loop waits for when it drains.
        let task = Task { [inbox, registry] in
            let disposition = await execution.run(entry.job)
            registry.remove(entry.running)
            inbox.yield(.finished(ticket, disposition))
        }
        entry.running.attach(task)
    }

    private func settle(_ entry: Held?, _ disposition: Disposition) {
        guard let entry else { return }
        switch disposition {
        case .acknowledge: entry.connection.acknowledge(entry.tag)
        case .requeue, .requeueAndPause: entry.connection.requeue(entry.tag)
        case .leave: break
        }
    }
}

extension JobDelivery {
    /// The id that a message without a readable job still names.
    var salvagedID: JobID? {
        if let messageID { return JobID(messageID) }
        guard body.count <= 1 << 20, let value = try? JSONParser.parse(body, options: .lenient) else { return nil }
        return value["id"]?.string.flatMap { JobID($0) }
    }

    /// Reads the message.
    /// - Throws: `JobRejection`.
    func decode(_ limits: JobLimits) throws(JobRejection) -> Job {
        if let contentEncoding, !contentEncoding.isEmpty, contentEncoding.lowercased() != "utf-8" {
            throw JobRejection(
                .malformed, field: "content_encoding", reason: "must be empty: nothing is unpacked here")
        }
        if let contentType, !contentType.isEmpty,
            !contentType.lowercased().hasPrefix("application/json")
        {
            throw JobRejection(.malformed, field: "content_type", reason: "must be application/json")
        }
        let job = try Job(body: body, limits: limits, route: (pool, lane))
        if let messageID, messageID != job.id.rawValue {
            throw JobRejection(.badID, field: "id", reason: "is not the message's message_id")
        }
        return job
    }
}
