import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

/// The rules that the lanes' contract states, one by one.
@Suite("Lane machine, rules")
struct LaneMachineRulesTests {
    private let start = ContinuousClock.now
    private func ticket(_ number: UInt64) -> LaneMachine.Ticket { LaneMachine.Ticket(number: number) }
    private func after(_ milliseconds: Int) -> ContinuousClock.Instant { start + .milliseconds(milliseconds) }

    private func connected(slots: Int, minimum: Int = 0) -> LaneMachine {
        var machine = LaneMachine(slots: slots, batchMinSlots: minimum)
        _ = machine.handle(.connected, at: start)
        return machine
    }

    /// A machine whose slots are all taken by batch jobs that may be pushed out.
    private func fullOfBatch(slots: Int, minimum: Int = 0) -> LaneMachine {
        var machine = connected(slots: slots, minimum: minimum)
        for number in 1...UInt64(slots) {
            _ = machine.handle(.delivered(ticket(number), .batch), at: start)
            _ = machine.handle(.claimed(ticket(number), isPreemptable: true), at: start)
        }
        return machine
    }

    private func ask(_ machine: inout LaneMachine, _ number: UInt64) -> [LaneMachine.Action] {
        _ = machine.handle(.delivered(ticket(number), .interactive), at: start)
        return machine.handle(.checked(ticket(number), isOpen: true), at: start)
    }

    @Test("a batch delivery in a quiet pool starts at once")
    func quietBatch() {
        var machine = connected(slots: 2)
        #expect(machine.handle(.delivered(ticket(1), .batch), at: start) == [.start(ticket(1))])
    }

    @Test("19 ms after an interactive delivery is not quiet, 20 ms is")
    func quietLength() {
        var machine = connected(slots: 2)
        _ = machine.handle(.delivered(ticket(1), .interactive), at: start)
        #expect(machine.handle(.delivered(ticket(2), .batch), at: after(19)) == [])
        #expect(machine.handle(.tick, at: after(19)) == [])
        #expect(machine.handle(.tick, at: after(20)).contains(.start(ticket(2))))
    }

    @Test("a held batch delivery goes back after a second, its consumer ends, and comes back a second later")
    func held() {
        var machine = connected(slots: 2)
        _ = machine.handle(.delivered(ticket(1), .interactive), at: start)
        _ = machine.handle(.delivered(ticket(2), .batch), at: after(10))
        _ = machine.handle(.delivered(ticket(3), .interactive), at: after(15))
        #expect(machine.handle(.tick, at: after(1009)) == [])
        #expect(machine.handle(.tick, at: after(1010)) == [.requeue(ticket(2))])
        // Others have a second to take it before the batch lane is attached again.
        #expect(machine.handle(.finished(ticket(1)), at: after(1100)) == [])
        #expect(machine.nextTick(after: after(1100)) == after(2010))
        #expect(machine.handle(.tick, at: after(2010)) == [.attach(.batch, prefetch: 1)])
    }

    @Test("with two interactive jobs waiting, two batch jobs are pushed out, the youngest first")
    func pushesTwo() {
        var machine = fullOfBatch(slots: 3)
        #expect(ask(&machine, 11) == [.preempt(ticket(3))])
        #expect(ask(&machine, 12) == [.preempt(ticket(2))])
        #expect(machine.handle(.finished(ticket(2)), at: start) == [.start(ticket(11))])
        #expect(machine.handle(.finished(ticket(3)), at: start) == [.start(ticket(12))])
    }

    @Test("never fewer than the minimum of batch jobs are left", arguments: 0...3)
    func minimum(_ minimum: Int) {
        var machine = fullOfBatch(slots: 3, minimum: minimum)
        var pushed = 0
        for number in UInt64(11)...14 {
            let actions = ask(&machine, number)
            pushed += actions.count { if case .preempt = $0 { true } else { false } }
        }
        #expect(pushed == 3 - minimum)
    }

    @Test("a batch job that has not claimed yet, or was pushed out often, is not pushed out")
    func notPreemptable() {
        for isClaimed in [false, true] {
            var machine = connected(slots: 1)
            _ = machine.handle(.delivered(ticket(1), .batch), at: start)
            if isClaimed { _ = machine.handle(.claimed(ticket(1), isPreemptable: false), at: start) }
            #expect(ask(&machine, 2) == [.detach(.interactive), .requeue(ticket(2))])
        }
    }

    @Test("an interactive job is never pushed out")
    func interactiveStays() {
        var machine = connected(slots: 1)
        _ = machine.handle(.delivered(ticket(1), .interactive), at: start)
        _ = machine.handle(.claimed(ticket(1), isPreemptable: true), at: start)
        #expect(ask(&machine, 2) == [.detach(.interactive), .requeue(ticket(2))])
    }

    @Test("a lost connection forgets what waits; what runs runs on and frees its slot")
    func disconnect() {
        var machine = fullOfBatch(slots: 1)
        _ = machine.handle(.delivered(ticket(2), .interactive), at: start)
        #expect(machine.handle(.disconnected, at: start) == [])
        #expect(machine.handle(.checked(ticket(2), isOpen: true), at: start) == [])
        #expect(machine.runningCount == 1 && !machine.isIdle)
        #expect(machine.handle(.finished(ticket(1)), at: start) == [])
        #expect(machine.isIdle)
        #expect(
            machine.handle(.connected, at: start) == [.attach(.interactive, prefetch: 1), .attach(.batch, prefetch: 1)])
    }

    @Test("a consumer that the broker ended is attached again while a slot is free")
    func consumerCancelled() {
        var machine = connected(slots: 1)
        #expect(machine.handle(.consumerCancelled(.interactive), at: start) == [.attach(.interactive, prefetch: 1)])
        _ = machine.handle(.delivered(ticket(1), .interactive), at: start)
        #expect(machine.handle(.consumerCancelled(.interactive), at: start) == [])
    }

    @Test("a pause that has passed takes up both lanes again, a drain never does")
    func pauseEnds() {
        var machine = connected(slots: 1)
        #expect(machine.handle(.pause(until: after(100)), at: start) == [.detach(.interactive), .detach(.batch)])
        #expect(machine.nextTick(after: start) == after(100))
        #expect(machine.handle(.tick, at: after(99)) == [])
        #expect(machine.handle(.tick, at: after(100)).count == 2)
        _ = machine.handle(.drain, at: after(100))
        _ = machine.handle(.pause(until: after(200)), at: after(100))
        #expect(machine.handle(.tick, at: after(300)) == [])
        #expect(machine.nextTick(after: after(300)) == nil)
    }

    @Test("a lane that refused its consumer is left alone until its time, also by a reconnect; the other goes on")
    func refused() {
        for (lane, other) in [(Lane.interactive, Lane.batch), (.batch, .interactive)] {
            var machine = connected(slots: 2)
            #expect(machine.handle(.refused(lane, until: after(5000)), at: start) == [])
            #expect(machine.nextTick(after: start) == after(5000))
            #expect(machine.handle(.delivered(ticket(1), other), at: after(1)) == [.start(ticket(1))])
            #expect(machine.handle(.finished(ticket(1)), at: after(2)) == [])
            _ = machine.handle(.disconnected, at: after(3))
            #expect(machine.handle(.connected, at: after(4)) == [.attach(other, prefetch: 2)])
            #expect(machine.handle(.tick, at: after(4999)) == [])
            #expect(machine.handle(.tick, at: after(5000)) == [.attach(lane, prefetch: 2)])
            #expect(machine.nextTick(after: after(5000)) == nil)
        }
    }

    @Test("a refused lane that could not be attached at its time, for want of slots, is when one is free")
    func refusedAndFull() {
        var machine = connected(slots: 1)
        _ = machine.handle(.refused(.batch, until: after(1000)), at: start)
        _ = machine.handle(.delivered(ticket(1), .interactive), at: start)
        #expect(machine.handle(.tick, at: after(1000)) == [])
        #expect(machine.handle(.finished(ticket(1)), at: after(2000)) == [.attach(.batch, prefetch: 1)])
    }

    @Test("the next tick is never now or in the past: a held delivery must not keep a thread busy")
    func noBusyTimer() {
        var machine = connected(slots: 2)
        _ = machine.handle(.delivered(ticket(1), .interactive), at: start)
        _ = machine.handle(.delivered(ticket(2), .batch), at: after(1))
        _ = machine.handle(.delivered(ticket(3), .interactive), at: after(2))
        #expect(machine.nextTick(after: after(2)) == after(22))
        // Quiet has come, but no slot is free: only the patience is left to wait for.
        _ = machine.handle(.tick, at: after(22))
        #expect(machine.nextTick(after: after(22)) == after(1001))
    }
}
