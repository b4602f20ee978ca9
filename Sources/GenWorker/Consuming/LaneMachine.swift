import GenShared

/// The rules by which a pool shares its slots between people who wait and work that nobody waits for.
///
/// Interactive deliveries start at once, and push the youngest batch job out where no slot is free. Batch jobs are
/// taken only while slots are free and no interactive delivery came for a moment; the batch consumer is attached only
/// then, so that no worker hoards batch jobs. Pure: takes what happened, returns what to do.
struct LaneMachine {
    typealias Instant = ContinuousClock.Instant

    /// Names a delivery for as long as it waits or runs.
    struct Ticket: Hashable, Sendable {
        let number: UInt64
    }

    enum Input {
        case connected
        /// The connection is gone, and with it the right to every delivery: what waits is forgotten, what runs runs on.
        case disconnected
        case delivered(Ticket, Lane)
        /// An interactive delivery found no slot; its record was read.
        case checked(Ticket, isOpen: Bool)
        /// A running job holds its claim.
        case claimed(Ticket, isPreemptable: Bool)
        /// What is to be done with a running job's delivery is known: its slot is free in a moment.
        case concluded(Ticket)
        /// A running job's slot is free again.
        case finished(Ticket)
        case consumerCancelled(Lane)
        /// The lane's consumer could not be attached: leave it alone for a while.
        case refused(Lane, until: Instant)
        case tick
        /// Take nothing for a while.
        case pause(until: Instant)
        /// Take nothing any more.
        case drain
    }

    enum Action: Equatable {
        case start(Ticket)
        case requeue(Ticket)
        /// Look whether the job is still open, then say `checked`.
        case check(Ticket)
        /// Done with: its job has ended.
        case acknowledge(Ticket)
        case preempt(Ticket)
        case attach(Lane, prefetch: Int)
        case detach(Lane)
    }

    private struct Running {
        let lane: Lane
        let order: UInt64
        /// The interactive consumer under which it came.
        let consumer: UInt64
        var isPreemptable = false
        var isPreempting = false
        var isConcluded = false

        /// Its slot is not on its way already.
        var mayBePushedOut: Bool { !isPreempting && !isConcluded }
    }

    /// How long after an interactive delivery no batch job starts: the next of a burst may be on its way.
    static let quiet: Duration = .milliseconds(20)
    /// How long a batch delivery is held before others get a chance with it.
    static let patience: Duration = .seconds(1)

    let slots: Int
    let batchMinSlots: Int
    private var running: [Ticket: Running] = [:]
    private var interactive: [Ticket] = []
    private var unchecked: Set<Ticket> = []
    private var batch: [(ticket: Ticket, since: Instant)] = []
    private var attached: Set<Lane> = []
    private var lastInteractive: Instant?
    private var order: UInt64 = 0
    private var isConnected = false
    private var isDraining = false
    private var pausedUntil: Instant?
    private var resumesAt: [Lane: Instant] = [:]
    /// The interactive consumer: which one it is, and how many deliveries it may hold.
    private var consumer: UInt64 = 0
    private var prefetch = 0

    init(slots: Int, batchMinSlots: Int = 0) {
        self.slots = slots
        self.batchMinSlots = batchMinSlots
    }

    var runningCount: Int { running.count }
    var isIdle: Bool { running.isEmpty && interactive.isEmpty && unchecked.isEmpty && batch.isEmpty }
    /// Whether the interactive lane would be consumed if there were a slot.
    func waitsForSlot(at now: Instant) -> Bool {
        isConnected && !isDraining && !isPaused(now) && free <= 0 && (resumesAt[.interactive] ?? now) <= now
    }
    private var free: Int { slots - running.count }
    /// Slots that are about to be free.
    private var coming: Int { running.values.count { $0.isPreempting || $0.isConcluded } }

    func isRunning(_ ticket: Ticket) -> Bool { running[ticket] != nil }
    /// Whether nothing is taken for now.
    func isPaused(at now: Instant) -> Bool { isPaused(now) }

    mutating func handle(_ input: Input, at now: Instant) -> [Action] {
        var actions: [Action] = []
        switch input {
        case .connected: isConnected = true
        case .disconnected:
            isConnected = false
            attached = []
            interactive = []
            unchecked = []
            batch = []
            return []
        case .delivered(let ticket, let lane): actions += deliver(ticket, lane, now)
        case .checked(let ticket, let isOpen):
            guard unchecked.remove(ticket) != nil else { return [] }
            if isOpen { interactive.append(ticket) } else { actions.append(.acknowledge(ticket)) }
        case .claimed(let ticket, let isPreemptable): running[ticket]?.isPreemptable = isPreemptable
        case .concluded(let ticket): running[ticket]?.isConcluded = true
        case .finished(let ticket): running[ticket] = nil
        case .consumerCancelled(let lane): attached.remove(lane)
        case .refused(let lane, let until):
            attached.remove(lane)
            resumesAt[lane] = until
        case .tick: break
        case .pause(let until): pausedUntil = until
        case .drain: isDraining = true
        }
        return actions + settle(now)
    }

    /// When `tick` is due; `nil` where nothing waits for time to pass.
    func nextTick(after now: Instant) -> Instant? {
        var times: [Instant] = []
        if !batch.isEmpty {
            if let lastInteractive { times.append(lastInteractive + Self.quiet) }
            times += batch.map { $0.since + Self.patience }
        }
        if let pausedUntil { times.append(pausedUntil) }
        times += resumesAt.values
        // What is past has been seen to, or waits for a slot: a tick for it would follow upon tick.
        return times.filter { $0 > now }.min()
    }

    private mutating func deliver(_ ticket: Ticket, _ lane: Lane, _ now: Instant) -> [Action] {
        if isDraining || isPaused(now) { return [.requeue(ticket)] }
        guard lane == .interactive else {
            batch.append((ticket, now))
            return []
        }
        lastInteractive = now
        if free > 0, interactive.isEmpty {
            return [start(ticket, lane)]
        }
        unchecked.insert(ticket)
        return [.check(ticket)]
    }

    /// Brings slots, waiting deliveries and consumers together, whatever has changed.
    private mutating func settle(_ now: Instant) -> [Action] {
        var actions: [Action] = []
        if isDraining || isPaused(now) { return stopTaking() }
        pausedUntil = nil
        while free > 0, !interactive.isEmpty { actions.append(start(interactive.removeFirst(), .interactive)) }
        while interactive.count > coming, let victim = youngestBatch() {
            running[victim]?.isPreempting = true
            actions.append(.preempt(victim))
        }
        if interactive.count > coming {
            // No slot can be freed: others shall have these.
            actions += detach(.interactive)
            while interactive.count > coming { actions.append(.requeue(interactive.removeLast())) }
        }
        actions += settleBatch(now)
        guard isConnected else { return actions }
        actions += settleInteractiveConsumer(now)
        let room = free - interactive.count - unchecked.count - batch.count
        if !attached.contains(.batch), batch.isEmpty, room > 0, mayAttach(.batch, now) {
            attached.insert(.batch)
            actions.append(.attach(.batch, prefetch: room))
        }
        return actions
    }

    /// Attaches the interactive consumer for as many deliveries as could start, and again for more where it came short.
    ///
    /// What ran when it was attached belongs to the consumer before, and does not count for it. More than could start
    /// would only be handed back, and each handing back counts at the broker.
    private mutating func settleInteractiveConsumer(_ now: Instant) -> [Action] {
        // A batch job that may be pushed out is as good as a free slot.
        let room = free + preemptableCount
        guard attached.contains(.interactive) else {
            guard mayAttach(.interactive, now), free > 0 || (preemptableCount > 0 && interactive.isEmpty) else {
                return []
            }
            return [attachInteractive(room)]
        }
        let held = running.values.count { $0.lane == .interactive && $0.consumer == consumer }
        let wanted = min(slots, held + room)
        // Doubling at least, or all there is: a few steps, not one for each slot.
        guard wanted > prefetch, wanted == slots || wanted >= 2 * prefetch, interactive.isEmpty, unchecked.isEmpty
        else {
            return []
        }
        return detach(.interactive) + [attachInteractive(room)]
    }

    private mutating func attachInteractive(_ room: Int) -> Action {
        attached.insert(.interactive)
        consumer += 1
        prefetch = min(slots, max(1, room))
        return .attach(.interactive, prefetch: prefetch)
    }

    private mutating func settleBatch(_ now: Instant) -> [Action] {
        var actions: [Action] = []
        let isQuiet = lastInteractive.map { now - $0 >= Self.quiet } ?? true
        while free > interactive.count + unchecked.count, isQuiet, !batch.isEmpty {
            actions.append(start(batch.removeFirst().ticket, .batch))
        }
        if free <= 0 { actions += detach(.batch) }
        if let oldest = batch.first, now - oldest.since >= Self.patience {
            actions += detach(.batch)
            actions += batch.map { .requeue($0.ticket) }
            batch = []
            // Others shall have a chance with them.
            resumesAt[.batch] = now + Self.patience
        }
        return actions
    }

    private mutating func stopTaking() -> [Action] {
        let waiting = interactive + unchecked + batch.map(\.ticket)
        interactive = []
        unchecked = []
        batch = []
        return detach(.interactive) + detach(.batch) + waiting.map { .requeue($0) }
    }

    private mutating func start(_ ticket: Ticket, _ lane: Lane) -> Action {
        order += 1
        running[ticket] = Running(lane: lane, order: order, consumer: consumer)
        return .start(ticket)
    }

    private mutating func detach(_ lane: Lane) -> [Action] {
        attached.remove(lane) != nil ? [.detach(lane)] : []
    }

    private func youngestBatch() -> Ticket? {
        guard preemptableCount > 0 else { return nil }
        return running.filter { $0.value.lane == .batch && $0.value.mayBePushedOut && $0.value.isPreemptable }
            .max { $0.value.order < $1.value.order }?.key
    }

    /// Batch jobs that may be pushed out, but for those that always have a slot.
    private var preemptableCount: Int {
        let candidates = running.values.filter { $0.lane == .batch && $0.mayBePushedOut }
        return max(0, min(candidates.count - batchMinSlots, candidates.count { $0.isPreemptable }))
    }

    /// Whether the lane's time of being left alone is over.
    private mutating func mayAttach(_ lane: Lane, _ now: Instant) -> Bool {
        guard let time = resumesAt[lane] else { return true }
        guard time <= now else { return false }
        resumesAt[lane] = nil
        return true
    }

    private func isPaused(_ now: Instant) -> Bool { pausedUntil.map { $0 > now } ?? false }
}
