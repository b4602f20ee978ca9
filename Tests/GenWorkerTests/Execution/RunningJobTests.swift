import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

@Suite("Running job", .timeLimit(.minutes(1)))
struct RunningJobTests {
    private let running = RunningJob(id: JobID(atMilliseconds: 1))

    /// A task that ends when it is cancelled.
    private func endless(_ ended: Journal<Bool>) -> Task<Void, Never> {
        Task {
            do { try await Task.sleep(for: .seconds(600)) } catch {}
            ended.append(Task.isCancelled)
        }
    }

    @Test("the first reason counts, and cancels the task")
    func firstReason() async {
        let ended = Journal<Bool>()
        running.attach(endless(ended))
        running.abort(.preempted)
        running.abort(.cancelled)
        #expect(running.reason == .preempted)
        #expect(await ended.wait(for: 1) == [true])
    }

    @Test("a task that is attached after the abort is cancelled at once")
    func abortFirst() async {
        let ended = Journal<Bool>()
        running.abort(.shutdown)
        running.attach(endless(ended))
        #expect(await ended.wait(for: 1) == [true])
    }

    @Test("a run beyond its timeout ends for good, a silence may heal, and neither counts once timers are stopped")
    func timers() {
        running.check(.now + .seconds(1_000_000))
        #expect(running.reason == nil)
        running.limitRun(to: .seconds(10))
        running.expectContent(within: .seconds(5))
        running.check(.now + .seconds(4))
        #expect(running.reason == nil)
        running.stopTimers()
        running.check(.now + .seconds(1_000_000))
        #expect(running.reason == nil)
        running.expectContent(within: .seconds(5))
        running.check(.now + .seconds(6))
        guard case .timedOut(_, isRetryable: true)? = running.reason else {
            Issue.record("\(String(describing: running.reason))")
            return
        }
        let late = RunningJob(id: running.id)
        late.limitRun(to: .seconds(1))
        late.expectContent(within: .seconds(1))
        late.check(.now + .seconds(2))
        guard case .timedOut(_, isRetryable: false)? = late.reason else {
            Issue.record("\(String(describing: late.reason))")
            return
        }
    }

    @Test("the registry finds a job by its id, and forgets an older entry only by itself")
    func registry() {
        let registry = JobRegistry()
        let again = RunningJob(id: running.id)
        registry.add(running)
        registry.add(again)
        registry.remove(running)
        #expect(registry.isRunning(running.id) && registry.ids == [running.id])
        registry.cancel(running.id)
        #expect(again.reason == .cancelled && running.reason == nil)
        registry.remove(again)
        #expect(!registry.isRunning(running.id))
        registry.cancel(running.id)
    }

    @Test("the registry's timers stop what has run out of time")
    func registryTimers() {
        let registry = JobRegistry()
        registry.add(running)
        registry.checkTimers(at: .now)
        #expect(running.reason == nil)
        running.limitRun(to: .zero)
        registry.checkTimers(at: .now)
        #expect(running.reason != nil)
    }

    @Test("failures wait 2 s, 10 s, 1 min; the fourth was the last")
    func retryPolicy() {
        #expect((1...5).map(RetryPolicy.delay(afterFailures:)) == [.seconds(2), .seconds(10), .seconds(60), nil, nil])
        #expect(RetryPolicy.delay(afterFailures: 0) == .seconds(2))
        // Each wait has a tier of its own.
        #expect(Topology.tier(for: .seconds(60)) == "gen.retry.v1.1m")
    }
}
