import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

@Suite("Job execution", .timeLimit(.minutes(1)))
struct JobExecutionTests {
    private static let done = ScriptedBackend.Step.event(
        .finished(.stop, Usage(promptTokens: 3, completionTokens: 2), tokensPerSecond: 10))

    private func text(_ pieces: String...) -> [ScriptedBackend.Step] { pieces.map { .event(.text($0)) } }

    @Test("a generation becomes chunks whose text is the result, an end, an announcement and an ack")
    func completes() async {
        let fixture = ExecutionFixture(text(" \"Hel", "lo", " there\" ") + [Self.done])
        #expect(await fixture.run() == .acknowledge)
        guard case .completed(let completion)? = fixture.store.log.last?.content else {
            Issue.record("not completed: \(fixture.store.log)")
            return
        }
        #expect(completion.result == "Hello there" && fixture.store.text == completion.result)
        #expect(completion.usage == Usage(promptTokens: 3, completionTokens: 2))
        #expect(completion.stats.queueMilliseconds == 5 && completion.stats.tokensPerSecond == 10)
        #expect(fixture.store.announced == [.completed] && fixture.backend.settledCount == 1)
        #expect(!fixture.store.hasLeases && fixture.router.retries.isEmpty && fixture.router.buried.isEmpty)
        for (before, after) in zip(fixture.store.log, fixture.store.log.dropFirst()) {
            #expect(after.previous == before.id && after.id == before.id.next)
        }
    }

    @Test("a slogan ends with its line, and the backend is stopped then")
    func sloganStops() async {
        let fixture = ExecutionFixture(text("Wake up", ".\nSecond") + [.hang], kind: .slogan)
        #expect(await fixture.run() == .acknowledge)
        #expect(fixture.store.text == "Wake up." && fixture.backend.settledCount == 1)
    }

    @Test("a failure that may heal goes to a tier and counts; the fourth is buried and ends the job")
    func failures() async {
        let failure = JobFailure(.backendError, "oops", isRetryable: true)
        for (before, delay) in [(0, Duration.seconds(2)), (1, .seconds(10)), (2, .seconds(60))] {
            let fixture = ExecutionFixture(text("a") + [.fail(failure)], store: MemoryExecutionStore(failures: before))
            #expect(await fixture.run() == .acknowledge)
            #expect(fixture.router.retries == [delay] && fixture.store.jobState == .retrying)
            #expect(fixture.store.failures == before + 1 && fixture.store.announced.isEmpty)
        }
        let last = ExecutionFixture([.fail(failure)], store: MemoryExecutionStore(failures: 3))
        #expect(await last.run() == .acknowledge)
        #expect(last.router.buried == ["backend_error"] && last.store.jobState == .failed)
        #expect(last.store.announced == [.failed])
    }

    @Test("a failure that will not heal is buried and ends the job at once")
    func permanent() async {
        let fixture = ExecutionFixture([.fail(JobFailure(.contextExceeded, "too long"))])
        #expect(await fixture.run() == .acknowledge)
        #expect(fixture.router.buried == ["context_exceeded"] && fixture.store.jobState == .failed)
    }

    @Test("without a confirm of the copy nothing is acknowledged")
    func unconfirmed() async {
        let retrying = ExecutionFixture(
            [.fail(JobFailure(.backendError, "oops", isRetryable: true))], confirms: false)
        #expect(await retrying.run() != .acknowledge)
        let dying = ExecutionFixture([.fail(JobFailure(.invalidInput, "no"))], confirms: false)
        #expect(await dying.run() == .requeueAndPause("RabbitMQ takes no copy"))
        #expect(dying.store.jobState == .retrying && dying.store.failures == 0)
    }

    @Test("a cancel stops the backend, before the first byte and in the middle, and keeps what was used")
    func cancels() async {
        for steps in [[.hang], text("some", " text") + [.hang]] {
            let fixture = ExecutionFixture(steps)
            let store = fixture.store
            #expect(
                await fixture.run {
                    store.setCancelWanted()
                    store.renew()
                } == .acknowledge)
            guard case .cancelled(_, _, let usage)? = fixture.store.log.last?.content else {
                Issue.record("not cancelled: \(fixture.store.log)")
                return
            }
            #expect(usage?.completionTokens == 2 && fixture.backend.settledCount == 1)
        }
    }

    @Test("an append's answer carries a cancel, too")
    func cancelByAppend() async {
        let store = MemoryExecutionStore()
        store.setCancelWanted()
        let fixture = ExecutionFixture(text("a", "b") + [.hang], store: store)
        #expect(await fixture.run() == .acknowledge)
        #expect(store.jobState == .cancelled)
    }

    @Test("preemption and shutdown give the job back at no cost")
    func handsBack() async {
        for (reason, word) in [(AbortReason.preempted, "preempted"), (.shutdown, "shutdown")] {
            let fixture = ExecutionFixture(text("a") + [.hang])
            let running = fixture.running
            #expect(await fixture.run { running.abort(reason) } == .requeue)
            guard case .retrying(let told, nil, _)? = fixture.store.log.last?.content else {
                Issue.record("not given back")
                return
            }
            #expect(told == word && fixture.store.failures == 0)
            #expect(fixture.store.preempted == (reason == .preempted ? 1 : 0))
            #expect(fixture.router.retries.isEmpty && fixture.router.buried.isEmpty)
        }
    }

    @Test("a stolen job is written to no more")
    func fenced() async {
        let fixture = ExecutionFixture(text("a") + [.hang])
        let (store, running) = (fixture.store, fixture.running)
        #expect(
            await fixture.run {
                store.steal()
                running.abort(.fenced)
            } == .requeue)
        #expect(!store.log.contains { $0.isTerminal } && store.announced.isEmpty)
    }

    @Test("B42: an answer that is too long, or empty, is no result")
    func badAnswers() async {
        let long = ExecutionFixture(text(String(repeating: "x", count: 200)) + [Self.done], outputLimit: 100)
        #expect(await long.run() == .acknowledge)
        #expect(long.router.buried == ["output_too_large"])
        let empty = ExecutionFixture(text("  \n") + [Self.done])
        #expect(await empty.run() == .acknowledge)
        #expect(empty.router.retries == [.seconds(2)])
    }

    @Test("B44: a run beyond its timeout fails for good; a silent backend may do better next time")
    func timers() async {
        let late = ExecutionFixture([.hang])
        let running = late.running
        #expect(
            await late.run {
                running.limitRun(to: .zero)
                running.check(.now)
            } == .acknowledge)
        #expect(late.router.buried == ["timeout"])
        let silent = ExecutionFixture([.hang])
        let other = silent.running
        #expect(
            await silent.run {
                other.expectContent(within: .zero)
                other.check(.now)
            } == .acknowledge)
        #expect(silent.router.retries == [.seconds(2)])
    }

    @Test("B14: a job that has ended is announced again and acknowledged; one that is busy or waits goes to a tier")
    func notClaimed() async {
        for (reply, retries) in [
            (ClaimReply.terminal(.completed), []), (.ended(.expired), []), (.busy(.seconds(4)), [Duration.seconds(4)]),
            (.wait(.seconds(9)), [.seconds(9)]),
        ] {
            let store = MemoryExecutionStore()
            store.answerClaims(with: reply)
            let fixture = ExecutionFixture([], store: store)
            #expect(await fixture.run() == .acknowledge)
            #expect(fixture.router.retries == retries && store.log.isEmpty)
            #expect(store.announced.count == (retries.isEmpty ? 1 : 0))
        }
    }
}
