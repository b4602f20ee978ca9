import GenShared
import GenTestSupport
import Synchronization
import Testing

@testable import GenWorker

/// Jobs that may have killed a worker.
@Suite("Suspect jobs", .timeLimit(.minutes(1)))
struct SuspectTests {
    private static let ends: [ScriptedBackend.Step] = [
        .event(.text("x")),
        .event(.finished(.stop, Usage(promptTokens: 1, completionTokens: 1), tokensPerSecond: nil)),
    ]

    private func suspect(_ steps: [ScriptedBackend.Step], _ gate: SuspectGate) -> ExecutionFixture {
        let store = MemoryExecutionStore()
        store.makeSuspect()
        return ExecutionFixture(steps, store: store, suspects: gate)
    }

    private final class Counts: Sendable {
        let inside = Atomic(0)
        let entered = Atomic(0)
    }

    @Test("a gate lets one in at a time, however many come at once")
    func gate() async {
        let gate = SuspectGate()
        let counts = Counts()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<64 {
                group.addTask {
                    for _ in 0..<200 where gate.enter() {
                        #expect(counts.inside.add(1, ordering: .relaxed).newValue == 1)
                        counts.entered.add(1, ordering: .relaxed)
                        await Task.yield()
                        counts.inside.subtract(1, ordering: .relaxed)
                        gate.leave()
                    }
                }
            }
        }
        #expect(counts.entered.load(ordering: .relaxed) > 0 && gate.enter())
        #expect(!gate.enter())
    }

    @Test("a suspect job that is alone runs as any other, and leaves the gate")
    func alone() async {
        let gate = SuspectGate()
        for _ in 0..<2 {
            let fixture = suspect(Self.ends, gate)
            #expect(await fixture.run() == .acknowledge)
            #expect(fixture.store.jobState == .completed && fixture.router.retries.isEmpty)
        }
    }

    @Test("while one suspect job runs the next waits in a tier, unclaimed, and one that is none runs at once")
    func oneAtATime() async {
        let gate = SuspectGate()
        let first = suspect([.hang], gate)
        let running = first.running
        let next = suspect(Self.ends, gate)
        let other = ExecutionFixture(Self.ends, suspects: gate)
        let met = Journal<Disposition>()
        #expect(
            await first.run {
                Task {
                    met.append(await next.run())
                    met.append(await other.run())
                    running.abort(.shutdown)
                }
            } == .requeue)
        #expect(met.elements == [.acknowledge, .acknowledge])
        #expect(next.router.retries == [.seconds(2)] && next.store.log.isEmpty && next.backend.settledCount == 0)
        #expect(other.store.jobState == .completed && other.router.retries.isEmpty)
        // The gate is free again: it may run now.
        #expect(await next.run() == .acknowledge)
        #expect(next.store.jobState == .completed)
    }

    @Test("the gate is left also where the job has ended meanwhile, or the store goes away")
    func leaves() async {
        let gate = SuspectGate()
        let ended = suspect([], gate)
        ended.store.answerClaims(with: .ended(.cancelled))
        #expect(await ended.run() == .acknowledge)
        #expect(ended.store.announced == [.cancelled])
        let busy = suspect([], gate)
        busy.store.answerClaims(with: .busy(.seconds(3)))
        #expect(await busy.run() == .acknowledge)
        #expect(busy.router.retries == [.seconds(3)])
        let failing = suspect([.fail(JobFailure(.invalidInput, "no"))], gate)
        #expect(await failing.run() == .acknowledge)
        #expect(gate.enter())
    }

    @Test("where the tier takes no copy of a suspect job, its message is not acknowledged")
    func unconfirmed() async {
        let gate = SuspectGate()
        #expect(gate.enter())
        let fixture = suspect(Self.ends, gate)
        fixture.router.confirm(false)
        #expect(await fixture.run() == .requeueAndPause("RabbitMQ takes no copy"))
        #expect(fixture.store.log.isEmpty)
    }
}
