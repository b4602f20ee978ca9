import GenShared

/// Runs one pool: takes its deliveries, gives them slots, acknowledges them when they are done with.
///
/// One loop takes everything that happens, in order; jobs run in tasks of their own, one for each slot.
final class PoolRunner: Sendable {
    enum Event: Sendable {
        case connected(any ConsumerConnection)
        case disconnected
        case delivery(AMQPDelivery, Lane, any ConsumerConnection)
        case consumerCancelled(Lane)
        /// A consumer could not be attached; the connection is lost with it.
        case attachFailed(Lane)
        case checked(LaneMachine.Ticket, isOpen: Bool)
        case claimed(LaneMachine.Ticket, isPreemptable: Bool)
        /// What is to be done with a delivery is known; its slot may still be held.
        case concluded(LaneMachine.Ticket, Disposition)
        /// The slot is free.
        case finished(LaneMachine.Ticket)
        /// A server is away: take nothing for a while.
        case troubled(String)
        case tick
        case drain
        /// Stop what still runs, at no cost to it.
        case abort
    }

    let name: String
    let slots: Int
    let services: ExecutionServices
    let lookUp: any SubmissionStore
    let registry: JobRegistry
    let readiness: Readiness
    let scheduler: any Scheduler
    private let batchMinSlots: Int
    private let events: AsyncStream<Event>
    /// Bounded by the prefetch of the consumers and by the slots.
    private let inbox: AsyncStream<Event>.Continuation

    init(
        name: String, slots: Int, batchMinSlots: Int, services: ExecutionServices, lookUp: any SubmissionStore,
        registry: JobRegistry, readiness: Readiness, scheduler: any Scheduler = SystemScheduler()
    ) {
        self.name = name
        self.slots = slots
        self.batchMinSlots = batchMinSlots
        self.services = services
        self.lookUp = lookUp
        self.registry = registry
        self.readiness = readiness
        self.scheduler = scheduler
        (events, inbox) = AsyncStream.makeStream(of: Event.self)
    }

    /// Tells the pool what happened; from any thread.
    func post(_ event: Event) { inbox.yield(event) }

    /// The consumer tag of a lane; names the lane when a delivery comes.
    func consumerTag(_ lane: Lane) -> String { Topology.routingKey(pool: name, lane: lane) }

    /// Runs until it was drained and the last job has ended.
    func run() async {
        var loop = PoolLoop(pool: self, machine: LaneMachine(slots: slots, batchMinSlots: batchMinSlots))
        for await event in events {
            await loop.handle(event)
            if loop.isDone { break }
        }
        loop.end()
    }
}
