import GenShared

@testable import GenWorker

/// What a backend does with one job, all the same for each attempt but for the failures.
struct BackendPlan: Sendable {
    enum Ending: Sendable {
        case completes
        /// A failure that may heal, in so many attempts first.
        case failsFirst(Int)
        case failsAlways
        case failsForGood
        /// Says nothing more in its first attempt.
        case hangsFirst
        /// Takes its worker along.
        case kills
    }

    var pieces: Int
    var ending: Ending
}

/// A backend whose answers tell which job and which start they belong to, so that a mixture cannot pass for a result.
///
/// `@unchecked`: see `Simulation`.
final class SimulatedBackend: GenerationBackend, @unchecked Sendable {
    let name = "simulated"
    let kinds = Set(JobKind.allCases)
    let model: String? = "m"
    let capacity = 8
    private let process: SimulatedProcess
    private let world: World

    init(_ process: SimulatedProcess, _ world: World) {
        self.process = process
        self.world = world
    }

    func start(progress: @escaping @Sendable (Progress) -> Void) async throws {}
    func probe() async throws -> String { "" }
    func stop() async {}

    func generate(_ request: GenerationRequest) -> any GenerationStream {
        let job = request.messages.last?.content ?? ""
        let plan = world.plans[job] ?? BackendPlan(pieces: 1, ending: .completes)
        // What a dead process does reaches nobody.
        let start = process.isAlive ? world.checker.started(job) : 0
        return Stream(process, world, job, start, plan)
    }

    /// `@unchecked`: see `Simulation`.
    private final class Stream: GenerationStream, @unchecked Sendable {
        private let process: SimulatedProcess
        private let world: World
        private let job: String
        private let start: Int
        private let plan: BackendPlan
        private var position = 0

        init(_ process: SimulatedProcess, _ world: World, _ job: String, _ start: Int, _ plan: BackendPlan) {
            self.process = process
            self.world = world
            self.job = job
            self.start = start
            self.plan = plan
        }

        var partialUsage: Usage? { nil }

        func next() async throws -> GenerationEvent? {
            let simulation = process.simulation
            // Now and then longer than a lease: it must be renewed by the timer, not by what is written.
            try await SimulatedScheduler(process: process).sleep(
                for: simulation.chance(0.1) ? simulation.duration(0...12_000) : simulation.duration(0...150))
            if position == (plan.pieces + 1) / 2 { try await misbehave() }
            guard position < plan.pieces else {
                return .finished(.stop, Usage(promptTokens: 1, completionTokens: plan.pieces), tokensPerSecond: nil)
            }
            position += 1
            return .text(SimulatedBackend.piece(job, start, position))
        }

        private func misbehave() async throws {
            let failure = JobFailure(.unavailable, "the backend is away", isRetryable: true)
            switch plan.ending {
            case .completes: return
            case .failsFirst(let count): if start <= count { throw failure }
            case .failsAlways: throw failure
            case .failsForGood: throw JobFailure(.invalidInput, "the backend refuses it")
            case .hangsFirst:
                if start == 1 { try await SimulatedScheduler(process: process).sleep(for: .seconds(100_000)) }
            case .kills:
                world.kill(process)
                throw CancellationError()
            }
        }

        func settle() async {
            await SimulatedScheduler(process: process).sleepUncancelled(for: process.simulation.duration(0...30))
        }
    }

    static func piece(_ job: String, _ start: Int, _ number: Int) -> String { "\(job).\(start).\(number);" }

    static func text(_ job: String, _ start: Int, _ pieces: Int) -> String {
        pieces < 1 ? "" : (1...pieces).map { piece(job, start, $0) }.joined()
    }
}
