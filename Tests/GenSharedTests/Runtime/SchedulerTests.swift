import GenTestSupport
import Testing

@testable import GenShared

@Suite("Scheduler", .timeLimit(.minutes(1)))
struct SchedulerTests {
    @Test("a sleep takes its time at least, and ends at once with a cancellation")
    func sleeps() async {
        let scheduler = SystemScheduler()
        let began = scheduler.now
        await #expect(throws: Never.self) { try await scheduler.sleep(for: .milliseconds(20)) }
        #expect(scheduler.now - began >= .milliseconds(20))
        let sleeper = Task { try await scheduler.sleep(for: .seconds(3600)) }
        sleeper.cancel()
        await #expect(throws: CancellationError.self) { try await sleeper.value }
    }

    @Test("a sleep that nothing cancels lasts its time in a cancelled task, too", arguments: [false, true])
    func uncancelled(_ isCancelled: Bool) async {
        let scheduler = ManualScheduler()
        let length = await scheduler.run {
            let began = scheduler.elapsed
            let task = scheduler.start { await scheduler.sleepUncancelled(for: .seconds(90)) }
            if isCancelled { task.cancel() }
            await task.value
            return scheduler.elapsed - began
        }
        #expect(length == .seconds(90))
    }

    @Test("what is started goes on when the task that started it is cancelled, and ends by its own handle")
    func starts() async {
        let scheduler = SystemScheduler()
        let states = Journal<Bool>()
        let parent = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return scheduler.start { states.append(Task.isCancelled) }
        }
        await parent.value.value
        let held = scheduler.start {
            do { try await scheduler.sleep(for: .seconds(3600)) } catch { states.append(Task.isCancelled) }
        }
        held.cancel()
        await held.value
        #expect(states.elements == [false, true])
    }

    @Test("time only rises, and the time of day is near the clock's")
    func clocks() {
        let scheduler = SystemScheduler()
        let (before, first) = (Timestamp.now, scheduler.now)
        #expect(scheduler.now >= first && scheduler.timestamp >= before && scheduler.timestamp <= Timestamp.now)
    }

    @Test("chance comes from the scheduler alone: one seed gives one row of pauses, another seed another")
    func chance() {
        func pauses(_ seed: UInt64) -> [Duration] {
            let scheduler = ManualScheduler(seed: seed)
            var backoff = Backoff(first: .seconds(1), limit: .seconds(8))
            return (0..<8).map { _ in backoff.next(on: scheduler) }
        }
        #expect(pauses(1) == pauses(1) && pauses(1) != pauses(2))
        let system = SchedulerRandomness(SystemScheduler())
        #expect(Set((0..<8).map { _ in system.next() }).count == 8)
    }
}
