import GenShared
import GenTestSupport

/// Redis: the rules of the scripts, subscribers, and what can happen to a server.
///
/// `@unchecked`: see `Simulation`.
final class SimulatedRedis: @unchecked Sendable {
    let simulation: Simulation
    var rules = StoreRules()
    private(set) var isUp = true
    /// Processes that cannot reach it.
    private var cutOff: Set<ObjectIdentifier> = []
    /// Grows with each connection that a process loses.
    private(set) var epochs: [ObjectIdentifier: Int] = [:]
    private var subscriptions: [Subscription] = []
    private var snapshots: [(at: Duration, rules: StoreRules)] = []
    /// Told what was written, after every call.
    var onChange: (() -> Void)?
    /// Told when a worker takes a lease back that it could not give back.
    var onTakenBack: ((JobID) -> Void)?

    /// `@unchecked`: see `Simulation`.
    final class Subscription: @unchecked Sendable {
        let process: SimulatedProcess
        let channel: String
        let listener: @Sendable (ChannelSignal) -> Void
        var isConfirmed = false
        /// A connection delivers in order.
        var lastDelivery: Duration = .zero
        var isGone = false
        var epoch = 0

        init(_ process: SimulatedProcess, _ channel: String, _ listener: @escaping @Sendable (ChannelSignal) -> Void) {
            self.process = process
            self.channel = channel
            self.listener = listener
        }
    }

    private let silentLosses: Double

    /// - Parameter silentLosses: the probability that a published message does not reach a subscriber.
    init(_ simulation: Simulation, silentLosses: Double) {
        self.simulation = simulation
        self.silentLosses = silentLosses
    }

    func isReachable(from process: SimulatedProcess) -> Bool {
        isUp && process.isAlive && !cutOff.contains(ObjectIdentifier(process))
    }

    func epoch(of process: SimulatedProcess) -> Int { epochs[ObjectIdentifier(process)] ?? 0 }

    /// Runs a call on the server, now.
    func execute<Reply>(_ body: (inout StoreRules) -> Reply) -> Reply {
        let reply = body(&rules)
        let published = rules.published
        rules.published = []
        for (channel, message) in published { publish(channel, message) }
        onChange?()
        return reply
    }

    // MARK: Trouble

    /// Stops or starts the server; nothing that it has is lost.
    func setUp(_ isUp: Bool) {
        self.isUp = isUp
        simulation.trace("redis \(isUp ? "up" : "down")")
        if !isUp { for subscription in subscriptions { lose(subscription) } }
        if isUp { for subscription in subscriptions { confirm(subscription) } }
    }

    func cutOff(_ process: SimulatedProcess) {
        cutOff.insert(ObjectIdentifier(process))
        cutConnections(of: process)
    }

    func reconnect(_ process: SimulatedProcess) {
        cutOff.remove(ObjectIdentifier(process))
        for subscription in subscriptions where subscription.process === process { confirm(subscription) }
    }

    /// The process' connections break once; they may be made again at once.
    func cutConnections(of process: SimulatedProcess) {
        epochs[ObjectIdentifier(process), default: 0] += 1
        for subscription in subscriptions where subscription.process === process {
            lose(subscription)
            confirm(subscription)
        }
    }

    /// Remembers the present, to which a failover may come back.
    func remember() {
        snapshots.append((simulation.elapsed, rules))
        if snapshots.count > 4 { snapshots.removeFirst() }
    }

    /// A failover to a replica that lags behind: the newest writes are gone.
    func rollBack() {
        guard let snapshot = snapshots.last(where: { simulation.elapsed - $0.at <= .seconds(3) }) else { return }
        setUp(false)
        rules = snapshot.rules
        rules.published = []
        setUp(true)
        onChange?()
    }

    // MARK: Pub/sub

    func subscribe(
        _ process: SimulatedProcess, _ channel: String, _ listener: @escaping @Sendable (ChannelSignal) -> Void
    ) -> Subscription {
        let subscription = Subscription(process, channel, listener)
        subscriptions.append(subscription)
        confirm(subscription)
        return subscription
    }

    func unsubscribe(_ subscription: Subscription) {
        subscription.isGone = true
        subscriptions.removeAll { $0 === subscription }
    }

    private func confirm(_ subscription: Subscription) {
        let epoch = subscription.epoch
        simulation.after(simulation.duration(0...40)) { [self] in
            guard isReachable(from: subscription.process), !subscription.isConfirmed, subscription.epoch == epoch else {
                return
            }
            subscription.isConfirmed = true
            deliver(.subscribed, to: subscription)
        }
    }

    private func lose(_ subscription: Subscription) {
        subscription.epoch += 1
        guard subscription.isConfirmed else { return }
        subscription.isConfirmed = false
        deliver(.lost("the connection is gone"), to: subscription)
    }

    private func publish(_ channel: String, _ message: String) {
        simulation.trace("redis \(channel) \(message)")
        for subscription in subscriptions where subscription.channel == channel && subscription.isConfirmed {
            // Pub/sub promises nothing, and a watcher's own inbox drops what it has no room for.
            if simulation.chance(silentLosses) { continue }
            deliver(.message(message), to: subscription)
        }
    }

    private func deliver(_ signal: ChannelSignal, to subscription: Subscription) {
        let due = max(subscription.lastDelivery, simulation.elapsed + simulation.duration(0...8))
        subscription.lastDelivery = due
        let epoch = subscription.epoch
        simulation.after(due - simulation.elapsed, in: subscription.process) {
            if subscription.isGone { return }
            // What was under way on a connection that broke is lost.
            if case .message = signal, subscription.epoch != epoch { return }
            subscription.listener(signal)
        }
    }
}

extension SimulatedRedis {
    /// A failover that loses the newest writes, of which the checker is told: what it knew of them is void.
    func rollBack(told checker: Checker) {
        let check = onChange
        onChange = nil
        rollBack()
        checker.rolledBack()
        onChange = check
    }
}
