import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

/// A pool's life at random: the broker delivers what the consumers may have, jobs begin and end, connections go.
private struct LaneRun {
    enum Fate {
        case waiting
        case running
        case gone
    }

    var generator: SeededGenerator
    var machine: LaneMachine
    let slots: Int
    let minimum: Int
    var now = ContinuousClock.now
    var fates: [LaneMachine.Ticket: (lane: Lane, fate: Fate)] = [:]
    var attached: [Lane: Int] = [:]
    var unchecked: [LaneMachine.Ticket] = []
    var pushed: Set<LaneMachine.Ticket> = []
    var isConnected = false
    var isDraining = false
    var next: UInt64 = 0
    var faults: [String] = []

    init(seed: UInt64) {
        generator = SeededGenerator(seed: seed)
        slots = Int.random(in: 1...6, using: &generator)
        minimum = Int.random(in: 0...slots, using: &generator)
        machine = LaneMachine(slots: slots, batchMinSlots: minimum)
    }

    func tickets(_ fate: Fate) -> [LaneMachine.Ticket] {
        fates.filter { $0.value.fate == fate }.keys.sorted { $0.number < $1.number }
    }

    mutating func check(_ holds: Bool, _ fault: String) { if !holds { faults.append(fault) } }

    mutating func handle(_ input: LaneMachine.Input) {
        for action in machine.handle(input, at: now) { perform(action) }
        let running = tickets(.running).count
        check(running <= slots, "\(running) run in \(slots) slots")
        check(machine.runningCount == running, "the machine counts \(machine.runningCount), \(running) run")
        check(attached[.batch] == nil || running < slots, "batch attached without a free slot")
        if let due = machine.nextTick(after: now) { check(due > now, "a tick that is due before now") }
    }

    private mutating func perform(_ action: LaneMachine.Action) {
        switch action {
        case .start(let ticket):
            check(fates[ticket]?.fate == .waiting, "started what did not wait")
            check(!isDraining, "started while draining")
            fates[ticket]?.fate = .running
        case .requeue(let ticket), .acknowledge(let ticket):
            check(fates[ticket]?.fate == .waiting, "gave back what did not wait")
            fates[ticket]?.fate = .gone
        case .check(let ticket): unchecked.append(ticket)
        case .preempt(let ticket):
            let left = fates.filter { $0.value.lane == .batch && $0.value.fate == .running && !pushed.contains($0.key) }
            check(left[ticket] != nil, "pushed out what is no running batch job")
            check(left.count > minimum, "pushed out below the minimum")
            pushed.insert(ticket)
        case .attach(let lane, let prefetch):
            check(isConnected && attached[lane] == nil && prefetch > 0, "attached \(lane) twice, or for nothing")
            attached[lane] = prefetch
        case .detach(let lane):
            check(attached[lane] != nil, "detached \(lane), which was not attached")
            attached[lane] = nil
        }
    }

    mutating func step() {
        now += .milliseconds(Int.random(in: 0...12, using: &generator))
        switch Int.random(in: 0..<100, using: &generator) {
        case 0..<40: deliver(Bool.random(using: &generator) ? .interactive : .batch)
        case 40..<62: if let ticket = tickets(.running).randomElement(using: &generator) { finish(ticket) }
        case 62..<74:
            if let ticket = tickets(.running).randomElement(using: &generator) {
                handle(.claimed(ticket, isPreemptable: Int.random(in: 0..<3, using: &generator) > 0))
            }
        case 74..<88: answerCheck()
        case 88..<95: handle(.tick)
        case 95: handle(.pause(until: now + .milliseconds(Int.random(in: 1...200, using: &generator))))
        case 96:
            if let lane = attached.keys.sorted(by: { $0.rawValue < $1.rawValue }).first {
                attached[lane] = nil
                handle(.consumerCancelled(lane))
            }
        case 97: if isConnected { disconnect() }
        default: if !isConnected { connect() }
        }
    }

    mutating func connect() {
        isConnected = true
        handle(.connected)
    }

    private mutating func disconnect() {
        isConnected = false
        attached = [:]
        for ticket in tickets(.waiting) { fates[ticket]?.fate = .gone }
        handle(.disconnected)
    }

    private mutating func deliver(_ lane: Lane) {
        guard isConnected, attached[lane] != nil else { return }
        next += 1
        let ticket = LaneMachine.Ticket(number: next)
        fates[ticket] = (lane, .waiting)
        handle(.delivered(ticket, lane))
    }

    mutating func finish(_ ticket: LaneMachine.Ticket) {
        fates[ticket]?.fate = .gone
        pushed.remove(ticket)
        handle(.finished(ticket))
    }

    mutating func answerCheck() {
        guard !unchecked.isEmpty else { return }
        // An answer may come after the connection was lost, or after the ticket was given back.
        let ticket = unchecked.remove(at: Int.random(in: 0..<unchecked.count, using: &generator))
        handle(.checked(ticket, isOpen: Int.random(in: 0..<4, using: &generator) > 0))
    }

    /// Lets everything run out without a drain.
    mutating func settle() {
        while !machine.isIdle && faults.isEmpty {
            now = machine.nextTick(after: now) ?? now
            handle(.tick)
            while !unchecked.isEmpty { answerCheck() }
            for ticket in tickets(.running) { finish(ticket) }
        }
    }
}

@Suite("Lane machine, random runs", .timeLimit(.minutes(2)))
struct LaneMachineRandomRunTests {
    @Test("in ten thousand steps no slot is taken twice and no ticket is lost", arguments: UInt64(1)...8)
    func longRun(_ seed: UInt64) {
        var run = LaneRun(seed: seed)
        run.connect()
        for _ in 0..<10_000 where run.faults.isEmpty {
            run.step()
            // What is done with needs no memory.
            if run.fates.count > 200 { run.fates = run.fates.filter { $0.value.fate != .gone } }
        }
        run.settle()
        #expect(run.faults == [], "seed \(seed)")
        #expect(run.machine.isIdle && run.tickets(.waiting).isEmpty && run.tickets(.running).isEmpty, "seed \(seed)")
    }

    @Test(
        "a drain at any moment gives back what waits, takes nothing more, and ends idle", arguments: UInt64(100)..<160)
    func drain(_ seed: UInt64) {
        var run = LaneRun(seed: seed)
        run.connect()
        for _ in 0..<Int(seed) { run.step() }
        run.isDraining = true
        run.handle(.drain)
        #expect(run.tickets(.waiting).isEmpty && run.attached.isEmpty, "seed \(seed)")
        for ticket in run.tickets(.running) { run.finish(ticket) }
        while !run.unchecked.isEmpty { run.answerCheck() }
        run.handle(.tick)
        #expect(run.machine.isIdle && run.attached.isEmpty && run.faults == [], "seed \(seed): \(run.faults)")
    }
}
