import GenShared

/// What a pool has in hand, and what it does with each thing that happens.
///
/// Used by the one loop of its pool, so nothing here is shared.
struct PoolLoop {
    /// A delivery with the connection on which alone it can be acknowledged.
    private struct Held {
        var tag: UInt64
        var connection: any ConsumerConnection
        /// Further messages of the same job on that connection.
        ///
        /// Each must fare for itself: the one in hand may be
        /// acknowledged for a copy's sake that is among these.
        var others: [UInt64] = []
        let delivery: JobDelivery
        let job: Job
        let running: RunningJob
    }

    private let pool: PoolRunner
    private var machine: LaneMachine
    private var held: [LaneMachine.Ticket: Held] = [:]
    private var tickets: [JobID: LaneMachine.Ticket] = [:]
    private var connection: (any ConsumerConnection)?
    private var nextTicket: UInt64 = 0
    private var timer: (task: Task<Void, Never>, due: ContinuousClock.Instant)?
    private var isDraining = false
    private var pauses = Backoff(first: .seconds(2), limit: .seconds(30))
    /// A queue that answers no consumer costs the whole connection each time it is tried, and with it the other lane.
    private var refusals: [Lane: Backoff] = [:]

    init(pool: PoolRunner, machine: LaneMachine) {
        self.pool = pool
        self.machine = machine
    }

    /// Whether it was drained and nothing runs any more.
    var isDone: Bool { isDraining && machine.isIdle }

    /// Ends the timer.
    func end() { timer?.task.cancel() }

    mutating func handle(_ event: PoolRunner.Event) async {
        let now = pool.scheduler.now
        for action in react(to: event, at: now) { await perform(action) }
        if connection != nil, machine.waitsForSlot(at: now) { pool.readiness.serves(pool.name) }
        scheduleTick(now)
    }

    private mutating func react(to event: PoolRunner.Event, at now: ContinuousClock.Instant) -> [LaneMachine.Action] {
        switch event {
        case .connected(let fresh):
            connection = fresh
            return machine.handle(.connected, at: now)
        case .disconnected:
            connection = nil
            forgetWaiting()
            return machine.handle(.disconnected, at: now)
        case .delivery(let delivery, let lane, let origin):
            guard let ticket = accept(delivery, lane, origin) else { return [] }
            return machine.handle(.delivered(ticket, lane), at: now)
        case .consumerCancelled(let lane):
            Log.warning("consumer_cancelled", ["pool": .string(pool.name), "lane": .string(lane.rawValue)])
            return machine.handle(.consumerCancelled(lane), at: now)
        case .attachFailed(let lane):
            // Longer than a refused connection waits to be made again: the next one is the other lane's.
            var backoff = refusals[lane] ?? Backoff(first: .seconds(12), limit: .seconds(120))
            let pause = backoff.next(on: pool.scheduler)
            refusals[lane] = backoff
            return machine.handle(.refused(lane, until: now + pause), at: now)
        case .checked(let ticket, let isOpen): return machine.handle(.checked(ticket, isOpen: isOpen), at: now)
        case .claimed(let ticket, let isPreemptable):
            return machine.handle(.claimed(ticket, isPreemptable: isPreemptable), at: now)
        case .concluded(let ticket, let disposition): return conclude(ticket, disposition, now)
        case .finished(let ticket): return machine.handle(.finished(ticket), at: now)
        case .troubled(let reason): return pause(reason, now)
        case .tick: return machine.handle(.tick, at: now)
        case .drain:
            isDraining = true
            return machine.handle(.drain, at: now)
        case .abort:
            for entry in held.values { entry.running.abort(.shutdown) }
            return []
        }
    }

    private mutating func conclude(
        _ ticket: LaneMachine.Ticket, _ disposition: Disposition, _ now: ContinuousClock.Instant
    ) -> [LaneMachine.Action] {
        settle(ticket, disposition)
        let actions = machine.handle(.concluded(ticket), at: now)
        guard case .requeueAndPause(let reason) = disposition else {
            pauses.reset()
            return actions
        }
        return actions + pause(reason, now)
    }

    /// Takes nothing for a while, longer each time: requeueing in a loop would use up the broker's delivery limit.
    private mutating func pause(_ reason: String, _ now: ContinuousClock.Instant) -> [LaneMachine.Action] {
        // All that was under way meets the same outage: it is one, and one pause.
        guard !machine.isPaused(at: now) else { return [] }
        let length = pauses.next(on: pool.scheduler)
        Log.warning(
            "consuming_paused",
            [
                "pool": .string(pool.name), "reason": .string(reason),
                "pause_ms": .integer(Int64(length.milliseconds)),
            ])
        pool.readiness.stops(pool.name, reason)
        return machine.handle(.pause(until: now + length), at: now)
    }

    /// What only waited is delivered again by the broker; what runs keeps its place for its next tag.
    private mutating func forgetWaiting() {
        for (ticket, entry) in held where !machine.isRunning(ticket) {
            held[ticket] = nil
            tickets[entry.job.id] = nil
        }
    }

    // MARK: Deliveries

    /// Reads a delivery.
    ///
    /// What is no job goes to the dead queue; what is here already only changes its tag.
    private mutating func accept(
        _ delivery: AMQPDelivery, _ lane: Lane, _ origin: any ConsumerConnection
    ) -> LaneMachine.Ticket? {
        let message = JobDelivery(delivery, pool: pool.name, lane: lane)
        let job: Job
        do throws(JobRejection) { job = try message.decode(pool.services.limits) } catch {
            let rejection = MessageRejection(services: pool.services, lookUp: pool.lookUp, message: message)
            // The loop goes on meanwhile: the broker may take its time to confirm the copy.
            let pool = pool
            pool.scheduler.start {
                let isSafe = await rejection.record(error)
                if isSafe { origin.acknowledge(delivery.tag) } else { origin.requeue(delivery.tag) }
                if !isSafe { pool.post(.troubled("a message that is no job finds no place")) }
            }
            return nil
        }
        if let twin = tickets[job.id] {
            if held[twin]?.connection === origin {
                held[twin]?.others.append(delivery.tag)
            } else {
                // The broker lost our connection and delivers again what still runs here: the new tag counts, those of
                // the old connection are void.
                held[twin]?.tag = delivery.tag
                held[twin]?.connection = origin
                held[twin]?.others = []
            }
            return nil
        }
        nextTicket += 1
        let ticket = LaneMachine.Ticket(number: nextTicket)
        tickets[job.id] = ticket
        held[ticket] = Held(
            tag: delivery.tag, connection: origin, delivery: message, job: job,
            running: RunningJob(id: job.id, scheduler: pool.scheduler))
        return ticket
    }

    /// Gives a delivery back to the broker, one way or the other.
    private mutating func settle(_ ticket: LaneMachine.Ticket, _ disposition: Disposition) {
        guard let entry = held.removeValue(forKey: ticket) else { return }
        tickets[entry.job.id] = nil
        switch disposition {
        case .acknowledge: entry.connection.acknowledge(entry.tag)
        case .requeue, .requeueAndPause: entry.connection.requeue(entry.tag)
        }
        // Their claims find how the job stands by then.
        for tag in entry.others { entry.connection.requeue(tag) }
    }

    // MARK: Actions

    private mutating func perform(_ action: LaneMachine.Action) async {
        switch action {
        case .start(let ticket): start(ticket)
        case .requeue(let ticket): settle(ticket, .requeue)
        case .acknowledge(let ticket): settle(ticket, .acknowledge)
        case .preempt(let ticket): held[ticket]?.running.abort(.preempted)
        case .check(let ticket): check(ticket)
        case .attach(let lane, let prefetch): await attach(lane, prefetch)
        case .detach(let lane): await detach(lane)
        }
    }

    private func start(_ ticket: LaneMachine.Ticket) {
        guard let entry = held[ticket] else { return }
        let pool = pool
        let execution = JobExecution(
            services: pool.services, running: entry.running,
            onClaim: { pool.post(.claimed(ticket, isPreemptable: $0)) },
            onConcluded: { disposition in
                pool.registry.remove(entry.running)
                pool.post(.concluded(ticket, disposition))
            }, delivery: entry.delivery)
        pool.registry.add(entry.running)
        // One task a slot; it ends with the job, whose end the loop waits for when it drains.
        let task = pool.scheduler.start {
            await execution.run(entry.job)
            pool.post(.finished(ticket))
        }
        entry.running.attach(task)
    }

    /// Looks whether the job is still open; the loop goes on meanwhile, the answer comes back as an event.
    private func check(_ ticket: LaneMachine.Ticket) {
        guard let job = held[ticket]?.job else { return }
        let pool = pool
        pool.scheduler.start {
            do {
                let state = try await pool.lookUp.record(job.id)?.state
                // A failed one is left to its claim, which sees to the copy in the dead queue, too.
                if let state, state.isTerminal, state != .failed {
                    try await pool.services.store.announce(
                        job.id, state: state, kind: job.kind.rawValue, tenant: job.tenant)
                    return pool.post(.checked(ticket, isOpen: false))
                }
            } catch {
                // A store that does not answer leaves the job open: its claim will tell.
                Log.debug("check_failed", ["job": .string(job.id.rawValue), "reason": .string("\(error)")])
            }
            pool.post(.checked(ticket, isOpen: true))
        }
    }

    /// No answer for that long, or a refusal, is about the queue; a connection that is lost sooner is lost.
    private static let silence: Duration = .seconds(5)

    private mutating func attach(_ lane: Lane, _ prefetch: Int) async {
        // Lost with the consumer of the other lane, which alone is to blame: its end is on its way as an event.
        guard let connection else { return }
        let began = pool.scheduler.now
        do {
            try await connection.consume(
                queue: Topology.queue(pool: pool.name, lane: lane), tag: pool.consumerTag(lane), prefetch: prefetch)
            refusals[lane] = nil
            if lane == .interactive { pool.readiness.serves(pool.name) }
        } catch {
            Log.error(
                "consume_failed",
                ["pool": .string(pool.name), "lane": .string(lane.rawValue), "reason": .string(error.message)])
            pool.readiness.stops(pool.name, "\(Topology.queue(pool: pool.name, lane: lane)): \(error.message)")
            self.connection = nil
            if error.isRefused || pool.scheduler.now - began >= Self.silence { pool.post(.attachFailed(lane)) }
        }
    }

    private func detach(_ lane: Lane) async {
        do { try await connection?.cancelConsumer(tag: pool.consumerTag(lane)) } catch {
            // The connection is gone; its loss is on its way as an event of its own.
            Log.debug("detach_failed", ["reason": .string(error.message)])
        }
    }

    /// Lets the loop turn when the machine next wants to look at the clock.
    private mutating func scheduleTick(_ now: ContinuousClock.Instant) {
        guard let due = machine.nextTick(after: now) else { return }
        if let timer, timer.due > now, timer.due <= due { return }
        timer?.task.cancel()
        let pool = pool
        // A timer of the loop's own: nobody awaits it, `end` cancels the last.
        let task = pool.scheduler.start {
            do { try await pool.scheduler.sleep(for: due - pool.scheduler.now) } catch { return }
            pool.post(.tick)
        }
        timer = (task, due)
    }
}
