import GenShared
import GenTestSupport

@testable import GenWorker

/// What a run is made of.
struct RunOptions: Sendable {
    var storeFaults: Set<StoreRules.Fault> = []
    var workerFaults: Set<WorkerFault> = []
    /// The probability that a call's connection breaks.
    var mishaps = 0.02
    /// Whether failovers may lose the newest writes.
    var rollsBack = false
    /// Whether nothing at all goes wrong.
    var isQuiet = false
}

/// One run's servers, processes and plans.
///
/// `@unchecked`: see `Simulation`.
final class World: @unchecked Sendable {
    let simulation: Simulation
    let redis: SimulatedRedis
    let broker: SimulatedBroker
    let checker: Checker
    let options: RunOptions
    var plans: [String: BackendPlan] = [:] {
        didSet { checker.plans = plans }
    }
    private(set) var workers: [SimulatedWorker] = []
    private var workerCount = 0
    private let slots: Int

    init(seed: UInt64, options: RunOptions) {
        simulation = Simulation(seed: seed)
        redis = SimulatedRedis(simulation, silentLosses: options.mishaps)
        redis.rules.faults = options.storeFaults
        broker = SimulatedBroker(simulation, pools: ["text"])
        checker = Checker(redis, simulation)
        checker.isQuiet = options.isQuiet
        self.options = options
        slots = Int.random(in: 1...2, using: &simulation.random)
        redis.onChange = { [checker] in checker.storeChanged() }
        redis.onTakenBack = { [checker] in checker.takenBack($0) }
        broker.onLastCopyGone = { [checker] in checker.lastCopyGone($0) }
        for _ in 0..<2 { addWorker() }
    }

    func addWorker() {
        workerCount += 1
        let process = SimulatedProcess("w\(workerCount)", in: simulation)
        if simulation.chance(0.2) {
            process.clockOffset = Int64.random(in: -3_600_000...3_600_000, using: &simulation.random)
        }
        workers.append(SimulatedWorker(process, self, slots: slots))
    }

    /// Kills a worker; another takes its place a little later.
    func kill(_ process: SimulatedProcess) {
        guard process.isAlive else { return }
        process.kill()
        workers.removeAll { $0.process === process }
        simulation.after(simulation.duration(100...5000)) { [self] in addWorker() }
    }

    /// Lets a worker drain; another takes its place.
    func retire(_ worker: SimulatedWorker) {
        guard workers.contains(where: { $0.process === worker.process }) else { return }
        workers.removeAll { $0.process === worker.process }
        let limit = simulation.duration(0...10_000)
        worker.drain(within: limit)
        simulation.after(limit + .seconds(60)) { worker.process.kill() }
        addWorker()
    }
}
