import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

/// The ends of an attempt when the store or the broker does not play along.
@Suite("Attempt ending", .timeLimit(.minutes(1)))
struct AttemptEndingTests {
    private static let done = ScriptedBackend.Step.event(.finished(.stop, nil, tokensPerSecond: nil))
    private let away = StoreError("away", isCertainlyUndone: false, isRetryable: true)
    private let refused = StoreError("refused", isCertainlyUndone: true, isRetryable: false)

    private func text(_ pieces: String...) -> [ScriptedBackend.Step] { pieces.map { .event(.text($0)) } }

    @Test("an end whose answer was lost is asked for again, until the store answers")
    func finishRepeats() async {
        let fixture = ExecutionFixture(text("a") + [Self.done])
        fixture.store.fail(.finish, with: away)
        fixture.store.fail(.announce, with: away)
        #expect(await fixture.run() == .acknowledge)
        #expect(fixture.store.jobState == .completed && fixture.store.announced == [.completed])
    }

    @Test("an end that the store refuses gives the message back, and nothing more is taken for a while")
    func finishRefused() async {
        let fixture = ExecutionFixture(text("a") + [Self.done])
        fixture.store.fail(.finish, with: refused)
        guard case .requeueAndPause = await fixture.run() else {
            Issue.record("not handed back")
            return
        }
        #expect(fixture.store.announced.isEmpty)
    }

    @Test("without the announcement nothing is acknowledged")
    func announceRefused() async {
        let fixture = ExecutionFixture(text("a") + [Self.done])
        fixture.store.fail(.announce, with: refused)
        guard case .requeueAndPause = await fixture.run() else {
            Issue.record("not given back")
            return
        }
    }

    @Test("a claim without answer pauses the pool, and the backend is not asked")
    func claimFails() async {
        let fixture = ExecutionFixture(text("a") + [Self.done])
        fixture.store.fail(.claim, with: refused)
        #expect(await fixture.run() == .requeueAndPause("refused"))
        #expect(fixture.store.log.isEmpty && fixture.backend.settledCount == 0)
    }

    @Test("a terminal job whose announcement fails is not acknowledged")
    func terminalNotAnnounced() async {
        let fixture = ExecutionFixture([])
        fixture.store.answerClaims(with: .terminal(.completed))
        fixture.store.fail(.announce, with: refused)
        #expect(await fixture.run() == .requeueAndPause("refused"))
    }

    @Test("a busy job whose copy is not confirmed is not acknowledged")
    func tierNotConfirmed() async {
        for reply in [ClaimReply.busy(.seconds(3)), .wait(.seconds(3))] {
            let fixture = ExecutionFixture([], confirms: false)
            fixture.store.answerClaims(with: reply)
            guard case .requeueAndPause = await fixture.run() else {
                Issue.record("not given back")
                continue
            }
            #expect(fixture.router.retries == [.seconds(3)])
        }
    }

    @Test("a store that lost its newest events gets them again with the end")
    func finishBehind() async {
        let fixture = ExecutionFixture(text("a", "b", "c") + [.hang])
        let (store, running) = (fixture.store, fixture.running)
        #expect(
            await fixture.run {
                store.rollBack(to: 1)
                running.abort(.cancelled)
            } == .acknowledge)
        #expect(store.text == "abc" && store.jobState == .cancelled)
        for (before, after) in zip(store.log, store.log.dropFirst()) { #expect(after.previous == before.id) }
    }

    @Test("a store that lost its newest events takes the job back all the same: the attempt does not count")
    func releaseBehind() async {
        let fixture = ExecutionFixture(text("a", "b") + [.hang])
        let (store, running) = (fixture.store, fixture.running)
        #expect(
            await fixture.run {
                store.rollBack(to: 1)
                running.abort(.preempted)
            } == .requeue)
        #expect(store.jobState == .retrying && store.preempted == 1 && store.log.count == 2)
    }

    @Test("a cancel that came just before wins over a release and over an end")
    func cancelWins() async {
        for reason in [AbortReason.preempted, .shutdown, .timedOut("late", isRetryable: true)] {
            let fixture = ExecutionFixture(text("a") + [.hang])
            let (store, running) = (fixture.store, fixture.running)
            #expect(
                await fixture.run {
                    store.setCancelWanted()
                    running.abort(reason)
                } == .acknowledge)
            #expect(store.jobState == .cancelled && store.announced == [.cancelled])
            #expect(fixture.router.retries.isEmpty)
        }
    }

    @Test("a store that is lost pauses the pool, and nothing is said to have ended")
    func storeLost() async {
        let fixture = ExecutionFixture(text("a") + [.hang])
        let running = fixture.running
        #expect(await fixture.run { running.abort(.storeLost("gone")) } == .requeueAndPause("gone"))
        #expect(fixture.store.announced.isEmpty && fixture.backend.settledCount == 1)
    }

    @Test("B39: an answer without the protocol's end is no success")
    func noEndMark() async {
        let fixture = ExecutionFixture(text("half"))
        #expect(await fixture.run() == .acknowledge)
        #expect(fixture.router.retries == [.seconds(2)] && fixture.store.jobState == .retrying)
    }

    @Test("a kind that no backend serves is buried, then failed")
    func unsupported() async {
        let fixture = ExecutionFixture([], kind: .image)
        #expect(await fixture.run() == .acknowledge)
        #expect(fixture.router.buried == ["unsupported"] && fixture.store.jobState == .failed)
        guard case .failed(let failure, _)? = fixture.store.log.last?.content else { return }
        #expect(failure.code == .unsupported && failure.message.contains("image"))
    }

    @Test("the last of several failures says how many there were, and keeps its own class")
    func exhausted() async {
        let failure = JobFailure(.backendError, "oops", isRetryable: true)
        let fixture = ExecutionFixture([.fail(failure)], store: MemoryExecutionStore(failures: 3))
        #expect(await fixture.run() == .acknowledge)
        guard case .failed(let last, let usage)? = fixture.store.log.last?.content else {
            Issue.record("not failed: \(fixture.store.log)")
            return
        }
        #expect(last.code == .backendError && last.message == "4 attempts failed; the last: oops")
        #expect(!last.isRetryable && usage?.completionTokens == 2)
    }

    @Test("an attempt that the backend puts off counts as nothing, and comes back by the tier that waits as long")
    func retryAfter() async {
        var failure = JobFailure(.rateLimited, "slow down", isRetryable: true)
        failure.retryAfterSeconds = 30
        let fixture = ExecutionFixture([.fail(failure)], store: MemoryExecutionStore(failures: 3))
        #expect(await fixture.run() == .acknowledge)
        #expect(fixture.store.failures == 3 && fixture.store.jobState == .retrying)
        #expect(fixture.router.retries == [.seconds(30)] && fixture.router.buried.isEmpty)
    }
}
