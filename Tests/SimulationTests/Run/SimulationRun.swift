import GenShared
import GenTestSupport

/// One run: a few jobs of every sort, people who watch and cancel them, harm for a while, then peace until all is done.
///
/// `@unchecked`: see `Simulation`.
final class SimulationRun: @unchecked Sendable {
    private struct Submitted {
        let job: Job
        var outcome: String?
    }

    private let world: World
    private let clients: SimulatedProcess
    private let hub: WatchHub
    private let clientStore: SimulatedStore
    private var jobs: [Submitted] = []
    private var watchers: [SimulatedWatcher] = []
    private var pending = 0

    private var simulation: Simulation { world.simulation }

    /// Simulated time after which everything must have ended.
    private static let limit: Duration = .seconds(1800)
    private static let stepLimit = 200_000

    init(seed: UInt64, options: RunOptions = RunOptions()) {
        let world = World(seed: seed, options: options)
        self.world = world
        let clients = SimulatedProcess("clients", in: world.simulation)
        self.clients = clients
        clientStore = SimulatedStore(world.redis, clients, mishaps: options.mishaps)
        hub = WatchHub(
            store: clientStore, channels: FaultyChannels(clientStore, options.workerFaults),
            scheduler: SimulatedScheduler(process: clients)
        ) { _, body in
            // Coarser than the product's: it only decides when silence is noticed.
            repeats(every: .milliseconds(400), in: clients, body)
        }
    }

    /// Runs it.
    /// - Returns: the rules that were broken; none, if all is well.
    func violations() -> [String] {
        prepare()
        let peace = simulation.duration(2000...30_000)
        if !world.options.isQuiet { Nemesis(world: world, until: peace).begin() }
        if world.options.rollsBack { repeats(every: .seconds(1), in: clients) { [world] in world.redis.remember() } }
        simulation.after(peace + .seconds(30)) { [self] in operatorResends() }
        while simulation.steps < Self.stepLimit, simulation.elapsed < Self.limit, world.checker.violations.isEmpty {
            if simulation.steps % 64 == 0, simulation.elapsed > peace + .seconds(31), isDone { break }
            guard simulation.step() else { break }
        }
        if world.checker.violations.isEmpty { judge() }
        end()
        return world.checker.violations
    }

    var steps: Int { simulation.steps }
    var isTraced: Bool {
        get { simulation.isTraced }
        set { simulation.isTraced = newValue }
    }

    // MARK: What people do

    private func prepare() {
        for number in 0..<Int.random(in: 2...4, using: &simulation.random) {
            let name = "j\(number)"
            let endings: [BackendPlan.Ending] = [
                .completes, .completes, .completes, .completes, .failsFirst(1), .failsFirst(3), .failsAlways,
                .failsForGood, .hangsFirst, .kills,
            ]
            let ending = world.options.isQuiet ? .completes : simulation.pick(endings) ?? .completes
            world.plans[name] = BackendPlan(pieces: Int.random(in: 1...5, using: &simulation.random), ending: ending)
            var job = Job(
                id: JobID(atMilliseconds: simulation.milliseconds, using: &simulation.random), kind: .reply,
                input: JobInput(text: name))
            job.lane = simulation.chance(0.4) ? .batch : .interactive
            job.createdAt = Timestamp(milliseconds: simulation.milliseconds)
            if simulation.chance(0.15) {
                job.expiresAt = Timestamp(
                    milliseconds: simulation.milliseconds + Int64.random(in: 100...20_000, using: &simulation.random))
            }
            jobs.append(Submitted(job: job))
            at(simulation.duration(0...6000)) { [self] in await submit(number) }
            let id = job.id
            // Somebody who is not sure hands it in once more: a second message of the same job.
            if simulation.chance(0.3) { at(simulation.duration(6000...20_000)) { [self] in await submitAgain(number) } }
            if simulation.chance(0.25) { at(simulation.duration(0...15_000)) { [self] in await cancel(id) } }
            for _ in 0..<Int.random(in: 0...2, using: &simulation.random) { watch(id) }
        }
    }

    /// - Parameter isAwaited: whether the run goes on until it has ended.
    private func at(_ delay: Duration, isAwaited: Bool = true, _ body: @escaping @Sendable () async -> Void) {
        if isAwaited { pending += 1 }
        simulation.after(delay, in: clients) { [self] in
            SimulatedScheduler(process: clients).start { [self] in
                await body()
                if isAwaited { pending -= 1 }
            }
        }
    }

    private func submit(_ number: Int) async {
        let scheduler = SimulatedScheduler(process: clients)
        let publisher = SimulatedPublisher(clients, world.broker, mishaps: world.options.mishaps)
        let submission = Submission(store: clientStore, publisher: publisher, scheduler: scheduler)
        let job = jobs[number].job
        do throws(SubmitError) {
            _ = try await submission.submit(job, deadline: .seconds(10))
            jobs[number].outcome = "accepted"
            world.checker.accepted.insert(job.id)
            if (world.broker.copies[job.id.rawValue] ?? 0) == 0 { world.checker.lastCopyGone(job.id.rawValue) }
        } catch {
            switch error {
            case .unknown: jobs[number].outcome = "unknown"
            default: jobs[number].outcome = "refused"
            }
        }
    }

    private func submitAgain(_ number: Int) async {
        guard jobs[number].outcome == "accepted" else { return }
        let publisher = SimulatedPublisher(clients, world.broker, mishaps: world.options.mishaps)
        let submission = Submission(
            store: clientStore, publisher: publisher, scheduler: SimulatedScheduler(process: clients))
        do throws(SubmitError) { _ = try await submission.submit(jobs[number].job, deadline: .seconds(10)) } catch {
            // Whatever it is told, the first one's answer stands.
        }
    }

    private func cancel(_ id: JobID) async {
        // Repeated until it is answered, as its documentation asks.
        for _ in 0..<40 {
            do {
                _ = try await clientStore.cancel(id, by: "somebody")
                return
            } catch {
                await SimulatedScheduler(process: clients).sleepUncancelled(for: .seconds(1))
            }
        }
    }

    private func watch(_ id: JobID) {
        at(simulation.duration(0...25_000), isAwaited: false) { [self] in
            let watcher = SimulatedWatcher(id, from: .origin, checker: world.checker)
            watchers.append(watcher)
            await watcher.run(hub)
        }
    }

    /// What `doctor --resend` does after a failover that lost writes: messages of open records are published again.
    private func operatorResends() {
        guard world.checker.wasRolledBack else { return }
        // A refused job may have left a record, too, if Redis was away when it was to be ended; an operator would see.
        for entry in jobs where entry.outcome != "refused" && jobState(entry.job.id)?.isTerminal == false {
            _ = world.broker.route(
                AMQPMessage(
                    exchange: Topology.jobs,
                    routingKey: Topology.routingKey(pool: entry.job.pool, lane: entry.job.lane), body: entry.job.body,
                    messageID: entry.job.id.rawValue, type: entry.job.kind.rawValue))
        }
    }

    // MARK: The end

    private func jobState(_ id: JobID) -> JobState? { world.redis.rules.entries[id]?.state }

    private func hasEnded(_ id: JobID) -> Bool { jobState(id)?.isTerminal == true }

    private var isDone: Bool {
        guard pending == 0, world.broker.isEmpty, watchers.allSatisfy({ $0.isDone || !hasEnded($0.id) }) else {
            return false
        }
        return jobs.allSatisfy {
            $0.outcome != "accepted" || jobState($0.job.id)?.isTerminal == true || world.checker.hasEnded($0.job.id)
        }
    }

    private func judge() {
        let checker = world.checker
        for entry in jobs {
            let state = jobState(entry.job.id)
            let name = entry.job.input.text
            switch entry.outcome {
            case "accepted":
                // A failover may take back the end of a job whose message is gone, record and all.
                if state?.isTerminal != true, !checker.hasEnded(entry.job.id) {
                    checker.violate("\(entry.job.id) (\(name)): accepted, and at the end \(state?.rawValue ?? "gone")")
                }
            case "refused":
                if checker.starts(of: name) > 0 { checker.violate("\(entry.job.id): refused, and yet it ran") }
            case nil: checker.violate("\(entry.job.id): a submission never ended")
            default: break
            }
            judgeDead(entry)
        }
        if !world.broker.isEmpty {
            checker.violate("messages are left: \(world.broker.copies.filter { $0.value > 0 })")
        }
        for watcher in watchers { watcher.judge(world.redis.rules.record(watcher.id)) }
        if pending > 0, checker.violations.isEmpty { checker.violate("\(pending) submissions or cancels never ended") }
    }

    /// What has failed in a worker's hands is in the dead queue.
    private func judgeDead(_ entry: Submitted) {
        guard jobState(entry.job.id) == .failed, entry.outcome == "accepted" else { return }
        if !world.broker.dead.contains(where: { $0.id == entry.job.id.rawValue }) {
            world.checker.violate("\(entry.job.id): failed, and not in the dead queue")
        }
    }

    /// Everybody dies, so that no task is left waiting.
    private func end() {
        for worker in world.workers { worker.process.kill() }
        clients.kill()
        var left = 20_000
        while left > 0, simulation.step() { left -= 1 }
    }
}

/// Channels as they are, or with each event made to name the one before it that was heard, whatever was lost between.
private struct FaultyChannels: ChannelSource {
    private let source: SimulatedStore
    private let faults: Set<WorkerFault>

    init(_ source: SimulatedStore, _ faults: Set<WorkerFault>) {
        self.source = source
        self.faults = faults
    }

    /// `@unchecked`: see `Simulation`.
    private final class Memory: @unchecked Sendable { var last: EventID? }

    func subscribe(_ channel: String, _ listener: @escaping @Sendable (ChannelSignal) -> Void) -> ChannelSubscription {
        guard faults.contains(.watchesWithoutPrevious) else { return source.subscribe(channel, listener) }
        let memory = Memory()
        return source.subscribe(channel) { signal in
            guard case .message(let text) = signal, let event = JobEvent(json: text) else { return listener(signal) }
            let claimed = JobEvent(id: event.id, previous: memory.last ?? event.previous, content: event.content)
            memory.last = event.id
            listener(.message(claimed.json))
        }
    }
}
