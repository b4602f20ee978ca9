import GenShared
import GenTestSupport

/// Time, order and chance of one run: whatever is to happen happens here, one thing at a time, in an order that a seed
/// fixes.
///
/// The product's own asynchronous code runs in it unchanged: its tasks prefer an executor that hands every step to this
/// scheduler, and its time and chance come from here. Which of the steps that could be next is next is left to chance:
/// so many orders are tried that a real machine would rarely show.
///
/// `@unchecked`: everything in a simulation happens on the thread that runs it.
final class Simulation: @unchecked Sendable {
    typealias Instant = ContinuousClock.Instant

    /// Something that is to happen later, unless it is cancelled.
    final class Timer {
        let due: Duration
        let order: UInt64
        let process: SimulatedProcess?
        fileprivate(set) var body: (() -> Void)?

        fileprivate init(due: Duration, order: UInt64, process: SimulatedProcess?, body: @escaping () -> Void) {
            self.due = due
            self.order = order
            self.process = process
            self.body = body
        }

        func cancel() { body = nil }
    }

    let seed: UInt64
    var random: SeededGenerator
    /// Since the beginning of the run.
    private(set) var elapsed: Duration = .zero
    private(set) var steps = 0
    private let base = ContinuousClock.now
    private var ready: [(step: Step, process: SimulatedProcess)] = []
    private var timers: [Timer] = []
    private var timerCount: UInt64 = 0

    enum Step {
        case job(UnownedJob)
        case call(() -> Void)
    }

    init(seed: UInt64) {
        self.seed = seed
        random = SeededGenerator(seed: seed)
    }

    var now: Instant { base + elapsed }
    /// The servers' clock, in milliseconds of Unix time.
    var milliseconds: Int64 { 1_800_000_000_000 + Int64(elapsed.milliseconds) }

    /// Prints what happens, for somebody who looks into one seed.
    var isTraced = false

    func trace(_ what: @autoclosure () -> String) {
        if isTraced { print("\(elapsed.milliseconds) ms  \(what())") }
    }

    // MARK: Chance

    func chance(_ probability: Double) -> Bool { Double.random(in: 0..<1, using: &random) < probability }

    func duration(_ range: ClosedRange<Int>) -> Duration { .milliseconds(Int.random(in: range, using: &random)) }

    func pick<Element>(_ elements: [Element]) -> Element? { elements.randomElement(using: &random) }

    // MARK: What happens

    /// Lets a process take a step as soon as chance will have it.
    func enqueue(_ step: Step, for process: SimulatedProcess) { ready.append((step, process)) }

    /// Lets something happen after that time: in that process, or, where there is none, in the world.
    @discardableResult
    func after(_ delay: Duration, in process: SimulatedProcess? = nil, _ body: @escaping () -> Void) -> Timer {
        timerCount += 1
        let timer = Timer(due: elapsed + max(delay, .zero), order: timerCount, process: process, body: body)
        push(timer)
        return timer
    }

    /// Takes one step.
    /// - Returns: false when nothing is left that could ever happen.
    func step() -> Bool {
        steps += 1
        if !ready.isEmpty {
            let index = Int.random(in: ready.indices, using: &random)
            ready.swapAt(index, ready.count - 1)
            let (step, process) = ready.removeLast()
            process.perform(step)
            return true
        }
        while let timer = pop() {
            guard let body = timer.body else { continue }
            elapsed = max(elapsed, timer.due)
            if let process = timer.process { process.perform(.call(body)) } else { body() }
            return true
        }
        return false
    }

    // MARK: A heap by time, then by order

    private func isBefore(_ left: Timer, _ right: Timer) -> Bool {
        left.due == right.due ? left.order < right.order : left.due < right.due
    }

    private func push(_ timer: Timer) {
        timers.append(timer)
        var child = timers.count - 1
        while child > 0 {
            let parent = (child - 1) / 2
            guard isBefore(timers[child], timers[parent]) else { return }
            timers.swapAt(child, parent)
            child = parent
        }
    }

    private func pop() -> Timer? {
        guard let first = timers.first else { return nil }
        let last = timers.removeLast()
        guard !timers.isEmpty else { return first }
        timers[0] = last
        var parent = 0
        while true {
            var child = 2 * parent + 1
            guard child < timers.count else { return first }
            if child + 1 < timers.count, isBefore(timers[child + 1], timers[child]) { child += 1 }
            guard isBefore(timers[child], timers[parent]) else { return first }
            timers.swapAt(child, parent)
            parent = child
        }
    }
}
