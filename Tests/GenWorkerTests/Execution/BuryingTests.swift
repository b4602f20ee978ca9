import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

/// Messages that go to the dead queue although this worker did not run their job.
@Suite("Burying", .timeLimit(.minutes(1)))
struct BuryingTests {
    private static let spoilt = StoreError(
        "gen:{x}:job holds a string", isCertainlyUndone: true, isRetryable: false, isSpoiltRecord: true)

    @Test("a message whose record is spoilt is buried and acknowledged; nothing is run, and nobody is told of an end")
    func spoiltRecord() async {
        let fixture = ExecutionFixture([.hang])
        fixture.store.fail(.claim, with: Self.spoilt)
        #expect(await fixture.run() == .acknowledge)
        #expect(fixture.router.buried == ["internal"] && fixture.store.announced.isEmpty)
        #expect(fixture.router.deliveries.first?.body == fixture.job.body && fixture.backend.settledCount == 0)
    }

    @Test("without a confirm of the copy a spoilt record's message stays where it is")
    func spoiltUnconfirmed() async {
        let fixture = ExecutionFixture([.hang], confirms: false)
        fixture.store.fail(.claim, with: Self.spoilt)
        #expect(await fixture.run() == .requeueAndPause("RabbitMQ takes no copy"))
    }

    @Test("another error of the store is no reason to bury: the message goes back, and the pool pauses")
    func otherError() async {
        let fixture = ExecutionFixture([.hang])
        fixture.store.fail(.claim, with: StoreError("Redis is full", isCertainlyUndone: true, isRetryable: false))
        #expect(await fixture.run() == .requeueAndPause("Redis is full"))
        #expect(fixture.router.buried.isEmpty)
    }

    @Test("a job that was failed by its claim, or by a worker that went away then, is buried before it is announced")
    func failedBefore() async {
        for reply in [ClaimReply.ended(.failed), .terminal(.failed)] {
            let store = MemoryExecutionStore()
            store.answerClaims(with: reply)
            store.setFailed(JobFailure(.poison, "three workers went away"))
            let fixture = ExecutionFixture([], store: store)
            #expect(await fixture.run() == .acknowledge)
            #expect(fixture.router.buried == ["poison"] && store.announced == [.failed])
            // As long as no copy is safe nothing is told and nothing acknowledged.
            fixture.router.confirm(false)
            #expect(await fixture.run() == .requeueAndPause("RabbitMQ takes no copy"))
            #expect(store.announced == [.failed])
        }
    }

    @Test(
        "a job that ended well, was cancelled or expired is not buried",
        arguments: [
            JobState.completed, .cancelled, .expired,
        ])
    func endedOtherwise(_ state: JobState) async {
        let store = MemoryExecutionStore()
        store.answerClaims(with: .terminal(state))
        let fixture = ExecutionFixture([], store: store)
        #expect(await fixture.run() == .acknowledge)
        #expect(fixture.router.buried.isEmpty && store.announced == [state])
    }
}
