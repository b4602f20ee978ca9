import Foundation
import GenShared
import GenTestSupport
import Synchronization
import Testing

@testable import GenWorker

/// The product's own deciding code (claims, lanes, retries, watches, submissions) on simulated servers, in simulated
/// time, under every fault that chance finds.
///
/// `GEN_SIMULATION_SEEDS` says how many seeds are tried; `GEN_SIMULATION_SEED` runs one alone, with a trace of what
/// happens. A run is the same each time only with `SWIFT_DETERMINISTIC_HASHING=1`.
@Suite("Simulation", .timeLimit(.minutes(15)))
struct SimulationTests {
    private static let environment = ProcessInfo.processInfo.environment

    init() { Log.setLevel(.none) }

    /// What several threads have found.
    private final class Tally: Sendable {
        private let state = Mutex((steps: 0, failed: [UInt64: [String]]()))

        var result: (steps: Int, failed: [UInt64: [String]]) { state.withLock { $0 } }

        func add(_ seed: UInt64, _ steps: Int, _ violations: [String]) {
            state.withLock { state in
                state.steps += steps
                if !violations.isEmpty { state.failed[seed] = violations }
            }
        }
    }

    @Test("whatever happens to servers, connections and workers, no rule is broken")
    func rulesHold() async {
        if let text = Self.environment["GEN_SIMULATION_SEED"], let seed = UInt64(text) {
            let run = SimulationRun(seed: seed, options: Self.options(seed))
            run.isTraced = true
            #expect(run.violations() == [])
            return
        }
        let count = Self.environment["GEN_SIMULATION_SEEDS"].flatMap { UInt64($0) } ?? 500
        let tally = Tally()
        async let odd: Void = OwnThread.run { Self.run(stride(from: 1, to: count, by: 2), tally) }
        await OwnThread.run { Self.run(stride(from: 0, to: count, by: 2), tally) }
        await odd
        let (steps, failed) = tally.result
        print("figure: simulation \(count) seeds, \(steps) steps, \(failed.count) with broken rules")
        for (seed, violations) in failed.sorted(by: { $0.key < $1.key }).prefix(20) {
            Issue.record(
                """
                seed \(seed): \(violations.joined(separator: "\n    "))
                alone: SWIFT_DETERMINISTIC_HASHING=1 GEN_SIMULATION_SEED=\(seed) swift test --filter rulesHold
                """)
        }
    }

    private static func run(_ seeds: some Sequence<UInt64>, _ tally: Tally) {
        for seed in seeds {
            let run = SimulationRun(seed: seed, options: options(seed))
            let violations = run.violations()
            tally.add(seed, run.steps, violations)
        }
    }

    @Test("the same seed is the same run")
    func sameSeed() {
        for seed in 0..<20 as Range<UInt64> {
            let first = SimulationRun(seed: seed, options: Self.options(seed))
            let second = SimulationRun(seed: seed, options: Self.options(seed))
            #expect(first.violations() == second.violations())
            // Sets and dictionaries have an order of their own in each run unless that is told to be the same.
            if Self.environment["SWIFT_DETERMINISTIC_HASHING"] == "1" { #expect(first.steps == second.steps) }
        }
    }

    @Test("a broken rule of the store is found", arguments: StoreRules.Fault.allCases)
    func storeFaultIsFound(_ fault: StoreRules.Fault) async {
        let found = await Self.firstViolation { seed in
            var options = Self.options(seed)
            options.storeFaults = [fault]
            return options
        }
        if let found { print("figure: \(fault.rawValue) found by seed \(found.seed): \(found.violation)") }
        #expect(found != nil, "2,000 seeds did not find \(fault.rawValue)")
    }

    @Test("a broken rule of the worker, or of a watcher, is found", arguments: WorkerFault.allCases)
    func workerFaultIsFound(_ fault: WorkerFault) async {
        let found = await Self.firstViolation { seed in
            var options = Self.options(seed)
            options.workerFaults = [fault]
            return options
        }
        if let found { print("figure: \(fault.rawValue) found by seed \(found.seed): \(found.violation)") }
        #expect(found != nil, "2,000 seeds did not find \(fault.rawValue)")
    }

    /// A mixture: some runs in which nothing goes wrong, some with failovers that lose writes, some very bad ones.
    private static func options(_ seed: UInt64) -> RunOptions {
        var options = RunOptions()
        switch seed % 8 {
        case 0:
            options.isQuiet = true
            options.mishaps = 0
        case 1, 2: options.rollsBack = true
        case 3: options.mishaps = 0.15
        default: break
        }
        return options
    }

    private static func firstViolation(
        _ options: @escaping @Sendable (UInt64) -> RunOptions
    ) async -> (seed: UInt64, violation: String)? {
        await OwnThread.run {
            for seed in 0..<2000 as Range<UInt64> {
                if let violation = SimulationRun(seed: seed, options: options(seed)).violations().first {
                    return (seed, violation)
                }
            }
            return nil
        }
    }
}

/// A thread for what computes long: on Swift's pool it would keep other tests from their turn.
private enum OwnThread {
    static func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) async -> Result {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: body()) }
        }
    }
}
