import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

@Suite("Lane machine")
struct LaneMachineTests {
    private let start = ContinuousClock.now
    private func ticket(_ number: UInt64) -> LaneMachine.Ticket { LaneMachine.Ticket(number: number) }

    private func connected(slots: Int, minimum: Int = 0) -> LaneMachine {
        var machine = LaneMachine(slots: slots, batchMinSlots: minimum)
        _ = machine.handle(.connected, at: start)
        return machine
    }

    @Test("both lanes are attached while slots are free, the batch lane only for the free ones")
    func attaches() {
        var machine = LaneMachine(slots: 4)
        #expect(
            machine.handle(.connected, at: start) == [.attach(.interactive, prefetch: 4), .attach(.batch, prefetch: 4)])
    }

    @Test("an interactive delivery starts at once; a batch delivery waits for a moment of quiet")
    func starts() {
        var machine = connected(slots: 3)
        #expect(machine.handle(.delivered(ticket(1), .interactive), at: start) == [.start(ticket(1))])
        #expect(machine.handle(.delivered(ticket(2), .batch), at: start + .milliseconds(5)) == [])
        #expect(machine.nextTick(after: start) == start + LaneMachine.quiet)
        #expect(machine.handle(.tick, at: start + .milliseconds(20)) == [.start(ticket(2))])
    }

    @Test("a full pool detaches the batch lane, and attaches it again when a slot is free")
    func detaches() {
        var machine = connected(slots: 1)
        #expect(
            machine.handle(.delivered(ticket(1), .batch), at: start) == [.start(ticket(1)), .detach(.batch)])
        #expect(machine.handle(.finished(ticket(1)), at: start) == [.attach(.batch, prefetch: 1)])
    }

    @Test("an interactive job pushes out the youngest batch job that may be pushed, once it is known to be open")
    func preempts() {
        var machine = connected(slots: 2)
        for number in UInt64(1)...2 {
            _ = machine.handle(.delivered(ticket(number), .batch), at: start)
            _ = machine.handle(.claimed(ticket(number), isPreemptable: true), at: start)
        }
        #expect(machine.handle(.delivered(ticket(3), .interactive), at: start) == [.check(ticket(3))])
        #expect(machine.handle(.checked(ticket(3), isOpen: true), at: start) == [.preempt(ticket(2))])
        #expect(machine.handle(.tick, at: start) == [])
        #expect(machine.handle(.finished(ticket(2)), at: start) == [.start(ticket(3))])
    }

    @Test("an interactive delivery whose job has ended is acknowledged and pushes nobody")
    func ended() {
        var machine = connected(slots: 1)
        _ = machine.handle(.delivered(ticket(1), .batch), at: start)
        _ = machine.handle(.claimed(ticket(1), isPreemptable: true), at: start)
        _ = machine.handle(.delivered(ticket(2), .interactive), at: start)
        #expect(machine.handle(.checked(ticket(2), isOpen: false), at: start) == [.acknowledge(ticket(2))])
    }

    @Test("when no slot can be freed, the delivery goes back and the consumer ends, until a slot is free")
    func nothingToFree() {
        for isPreemptable in [false, true] {
            var machine = connected(slots: 1, minimum: isPreemptable ? 1 : 0)
            _ = machine.handle(.delivered(ticket(1), .batch), at: start)
            _ = machine.handle(.claimed(ticket(1), isPreemptable: isPreemptable), at: start)
            _ = machine.handle(.delivered(ticket(2), .interactive), at: start)
            let actions = machine.handle(.checked(ticket(2), isOpen: true), at: start)
            #expect(actions.contains(.requeue(ticket(2))) && actions.contains(.detach(.interactive)))
            let after = machine.handle(.finished(ticket(1)), at: start)
            #expect(after.contains(.attach(.interactive, prefetch: 1)))
        }
    }

    @Test("a batch job that may be pushed out is as good as a free slot: the interactive lane is attached again for it")
    func claimedLate() {
        var machine = connected(slots: 1)
        _ = machine.handle(.delivered(ticket(1), .batch), at: start)
        _ = machine.handle(.delivered(ticket(2), .interactive), at: start)
        // Not claimed yet, the batch job cannot be pushed out.
        #expect(machine.handle(.checked(ticket(2), isOpen: true), at: start).contains(.detach(.interactive)))
        let actions = machine.handle(.claimed(ticket(1), isPreemptable: true), at: start)
        #expect(actions == [.attach(.interactive, prefetch: 1)])
    }

    @Test("a batch delivery that is held for a second goes back to its queue")
    func patience() {
        var machine = connected(slots: 2)
        _ = machine.handle(.delivered(ticket(1), .interactive), at: start)
        _ = machine.handle(.delivered(ticket(2), .batch), at: start)
        var now = start
        for number in UInt64(10)..<70 {
            // Interactive jobs come and go without a moment of quiet.
            now = start + .milliseconds(Int(number - 9) * 15)
            _ = machine.handle(.delivered(ticket(number), .interactive), at: now)
            _ = machine.handle(.finished(ticket(number)), at: now)
        }
        let actions = machine.handle(.delivered(ticket(99), .interactive), at: start + .seconds(1))
        #expect(actions.contains(.requeue(ticket(2))) && !actions.contains(.start(ticket(2))))
    }

    @Test("a drain and a pause hand everything back that has not begun; a pause ends by itself")
    func stops() {
        for input in [LaneMachine.Input.drain, .pause(until: start + .seconds(1))] {
            var machine = connected(slots: 2)
            _ = machine.handle(.delivered(ticket(1), .interactive), at: start)
            _ = machine.handle(.delivered(ticket(2), .batch), at: start)
            let actions = machine.handle(input, at: start)
            #expect(actions.contains(.requeue(ticket(2))) && actions.contains(.detach(.interactive)))
            #expect(machine.handle(.delivered(ticket(3), .interactive), at: start) == [.requeue(ticket(3))])
            let later = machine.handle(.tick, at: start + .seconds(2))
            if case .drain = input {
                #expect(later == [])
            } else {
                // One slot is taken: more than the other could start would only be handed back.
                #expect(later.contains(.attach(.interactive, prefetch: 1)))
            }
        }
    }

    @Test(
        "in any mix no more run than there are slots, and each delivery has exactly one fate",
        arguments: UInt64(0)..<200)
    func randomMix(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let slots = Int.random(in: 1...5, using: &generator)
        var machine = LaneMachine(slots: slots, batchMinSlots: Int.random(in: 0...slots, using: &generator))
        var attached: [Lane: Bool] = [:]
        var waiting: Set<LaneMachine.Ticket> = []
        var running: Set<LaneMachine.Ticket> = []
        var unchecked: [LaneMachine.Ticket] = []
        var next: UInt64 = 0
        var now = start
        func perform(_ actions: [LaneMachine.Action]) {
            for action in actions {
                switch action {
                case .start(let ticket):
                    #expect(waiting.remove(ticket) != nil, "seed \(seed)")
                    running.insert(ticket)
                case .requeue(let ticket), .acknowledge(let ticket):
                    #expect(waiting.remove(ticket) != nil, "seed \(seed)")
                case .check(let ticket): unchecked.append(ticket)
                case .preempt(let ticket): #expect(running.contains(ticket))
                case .attach(let lane, let prefetch):
                    #expect(attached[lane] != true && prefetch > 0)
                    attached[lane] = true
                case .detach(let lane): attached[lane] = false
                }
            }
            #expect(running.count <= slots, "seed \(seed)")
        }
        perform(machine.handle(.connected, at: now))
        for _ in 0..<500 {
            now += .milliseconds(Int.random(in: 0...30, using: &generator))
            switch Int.random(in: 0..<8, using: &generator) {
            case 0, 1, 2:
                let lane: Lane = Bool.random(using: &generator) ? .interactive : .batch
                guard attached[lane] == true else { continue }
                next += 1
                waiting.insert(ticket(next))
                perform(machine.handle(.delivered(ticket(next), lane), at: now))
            case 3, 4:
                if let ticket = running.randomElement(using: &generator) {
                    running.remove(ticket)
                    perform(machine.handle(.finished(ticket), at: now))
                }
            case 5:
                if let ticket = running.randomElement(using: &generator) {
                    perform(machine.handle(.claimed(ticket, isPreemptable: .random(using: &generator)), at: now))
                }
            case 6:
                if !unchecked.isEmpty {
                    let ticket = unchecked.removeFirst()
                    perform(machine.handle(.checked(ticket, isOpen: .random(using: &generator)), at: now))
                }
            default:
                if Int.random(in: 0..<40, using: &generator) == 0 {
                    waiting = []
                    unchecked = []
                    attached = [:]
                    perform(machine.handle(.disconnected, at: now))
                    perform(machine.handle(.connected, at: now))
                } else {
                    perform(machine.handle(.tick, at: now))
                }
            }
        }
        for ticket in unchecked { perform(machine.handle(.checked(ticket, isOpen: true), at: now)) }
        perform(machine.handle(.drain, at: now))
        for ticket in running { perform(machine.handle(.finished(ticket), at: now)) }
        #expect(machine.isIdle && waiting.isEmpty, "seed \(seed)")
    }

    @Test("a delivery that comes before the slot of a concluded job is free waits for it, and the consumer stays")
    func concluded() {
        var machine = LaneMachine(slots: 1)
        _ = machine.handle(.connected, at: start)
        _ = machine.handle(.delivered(ticket(1), .interactive), at: start)
        #expect(machine.handle(.concluded(ticket(1)), at: start) == [])
        #expect(machine.handle(.delivered(ticket(2), .interactive), at: start) == [.check(ticket(2))])
        #expect(machine.handle(.checked(ticket(2), isOpen: true), at: start) == [])
        #expect(machine.handle(.finished(ticket(1)), at: start) == [.start(ticket(2))])
    }

    @Test(
        "an interactive consumer that was attached for few slots is attached for more when more are free, in few steps")
    func widening() {
        var machine = LaneMachine(slots: 8)
        _ = machine.handle(.connected, at: start)
        for number in 1...8 as ClosedRange<UInt64> {
            _ = machine.handle(.delivered(ticket(number), .interactive), at: start)
        }
        _ = machine.handle(.disconnected, at: start)
        _ = machine.handle(.connected, at: start)
        var prefetches: [Int] = []
        for number in 1...8 as ClosedRange<UInt64> {
            for case .attach(.interactive, let prefetch) in machine.handle(.finished(ticket(number)), at: start) {
                prefetches.append(prefetch)
            }
        }
        #expect(prefetches == [1, 2, 4, 8])
    }

    @Test("a lane that refuses its consumer is left alone until its time, and the other goes on")
    func refused() {
        var machine = LaneMachine(slots: 2)
        _ = machine.handle(.connected, at: start)
        _ = machine.handle(.refused(.batch, until: start + .seconds(5)), at: start)
        _ = machine.handle(.disconnected, at: start)
        let again = machine.handle(.connected, at: start + .seconds(1))
        #expect(again == [.attach(.interactive, prefetch: 2)])
        #expect(machine.nextTick(after: start + .seconds(1)) == start + .seconds(5))
        #expect(machine.handle(.tick, at: start + .seconds(5)) == [.attach(.batch, prefetch: 2)])
    }
}
