import GenShared

/// One process: its steps can be stopped and continued, and it can die.
///
/// A dead process' tasks still run to their end, so that nothing leaks, but nothing that they do reaches the world any
/// more: every port of a dead process refuses.
///
/// `@unchecked`: see `Simulation`.
final class SimulatedProcess: TaskExecutor, @unchecked Sendable {
    let name: String
    let simulation: Simulation
    private(set) var isAlive = true
    private(set) var isStopped = false
    private var held: [Simulation.Step] = []
    /// Jobs that were delivered and not settled, for the fault that takes their redelivery for done.
    var unsettled: [String: UInt64] = [:]
    /// How far its clock of the day is off.
    var clockOffset: Int64 = 0
    /// Called when it dies, for servers to hear of it.
    var onDeath: [() -> Void] = []

    init(_ name: String, in simulation: Simulation) {
        self.name = name
        self.simulation = simulation
    }

    func enqueue(_ job: consuming ExecutorJob) { simulation.enqueue(.job(UnownedJob(job)), for: self) }

    func perform(_ step: Simulation.Step) {
        if isStopped { return held.append(step) }
        switch step {
        case .job(let job): job.runSynchronously(on: asUnownedTaskExecutor())
        case .call(let body): body()
        }
    }

    /// As SIGSTOP.
    func stop() {
        simulation.trace("\(name) stopped")
        isStopped = true
    }

    /// As SIGCONT.
    func resume() {
        simulation.trace("\(name) continued")
        isStopped = false
        for step in held { simulation.enqueue(step, for: self) }
        held = []
    }

    /// As SIGKILL.
    func kill() {
        guard isAlive else { return }
        simulation.trace("\(name) killed")
        isAlive = false
        resume()
        for body in onDeath { body() }
        onDeath = []
    }
}

/// The product's scheduler, in simulated time.
///
/// `@unchecked`: see `Simulation`.
struct SimulatedScheduler: Scheduler, @unchecked Sendable {
    let process: SimulatedProcess

    private var simulation: Simulation { process.simulation }

    var now: ContinuousClock.Instant { simulation.now }
    var timestamp: Timestamp { Timestamp(milliseconds: simulation.milliseconds + process.clockOffset) }
    func random() -> UInt64 { simulation.random.next() }

    @discardableResult
    func start(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        Task(executorPreference: process) { await body() }
    }

    func sleep(for duration: Duration) async throws {
        let sleeper = Sleeper()
        await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                if Task.isCancelled { return continuation.resume() }
                sleeper.continuation = continuation
                sleeper.timer = simulation.after(duration, in: process) { sleeper.wake() }
            }
        } onCancel: {
            sleeper.wake()
        }
        try Task.checkCancellation()
    }

    /// `@unchecked`: see `Simulation`.
    private final class Sleeper: @unchecked Sendable {
        var continuation: UnsafeContinuation<Void, Never>?
        var timer: Simulation.Timer?

        func wake() {
            timer?.cancel()
            continuation?.resume()
            continuation = nil
        }
    }
}
