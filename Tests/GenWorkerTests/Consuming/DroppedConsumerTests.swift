import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

/// What becomes of messages that RabbitMQ gave up.
@Suite("Dropped consumer", .timeLimit(.minutes(1)))
struct DroppedConsumerTests {
    /// A dropped consumer that is attached, with everything around it in memory and in virtual time.
    private struct Stage: Sendable {
        let scheduler: ManualScheduler
        let submissions: MemorySubmissionStore
        let store = MemoryExecutionStore()
        let router: RecordingRouter
        let connection: FakeConnection
        let consumer: DroppedConsumer
        let job = Job(
            id: JobID(atMilliseconds: 1), kind: .reply, input: JobInput(text: "x"), lane: .batch, pool: "text")

        init(
            _ scheduler: ManualScheduler, before: (@Sendable (MemorySubmissionStore) -> Void)? = nil,
            refuses: @escaping @Sendable (FakeConnection.Call) -> Bool = { _ in false },
            beforeCall: (@Sendable (FakeConnection.Call) -> Void)? = nil
        ) {
            self.scheduler = scheduler
            let submissions = MemorySubmissionStore(scheduler: scheduler)
            self.submissions = submissions
            router = RecordingRouter(before: { before?(submissions) })
            connection = FakeConnection(refuses: refuses, before: beforeCall)
            consumer = DroppedConsumer(
                store: submissions, executions: store, router: router, limits: JobLimits(), scheduler: scheduler)
        }

        /// Hands a message over, and lets that much time pass.
        func take(_ body: [UInt8]? = nil, id: String?? = .none, key: String = "text.batch", for time: Duration) async {
            let id = id ?? job.id.rawValue
            consumer.take(
                .of(body ?? job.body, id: id, tag: 7, consumer: DroppedConsumer.tag, key: key), from: connection)
            await scheduler.sleepUncancelled(for: time)
        }
    }

    private func stage(
        before: (@Sendable (MemorySubmissionStore) -> Void)? = nil,
        refuses: @escaping @Sendable (FakeConnection.Call) -> Bool = { _ in false },
        beforeCall: (@Sendable (FakeConnection.Call) -> Void)? = nil,
        _ body: @escaping @Sendable (Stage) async -> Void
    ) async {
        let scheduler = ManualScheduler()
        await scheduler.run {
            await body(Stage(scheduler, before: before, refuses: refuses, beforeCall: beforeCall))
        }
    }

    @Test("a job that waits is failed, then buried, then announced, then acknowledged")
    func waiting() async {
        let order = Journal<String>()
        await stage(
            before: { store in order.append("buried when \(store.jobs.values.first?.state.rawValue ?? "unknown")") },
            beforeCall: { order.append("\($0)") },
            { stage in
                stage.submissions.put(stage.job, .queued)
                await stage.take(for: .seconds(1))
                #expect(order.elements == ["buried when failed", "acknowledge(7)"])
                #expect(stage.submissions[stage.job.id]?.failure?.code == .dropped)
                #expect(stage.router.buried == ["dropped"] && stage.store.announced == [.failed])
            })
    }

    @Test("a job without a record, which another client sent, is failed as well")
    func noRecord() async {
        await stage { stage in
            await stage.take(for: .seconds(1))
            #expect(stage.submissions[stage.job.id]?.state == .failed && stage.router.buried == ["dropped"])
            #expect(stage.connection.calls.elements == [.acknowledge(7)])
        }
    }

    @Test("a job under a live lease goes back to its own lane by way of a tier, and is neither failed nor buried")
    func running() async {
        await stage { stage in
            stage.submissions.put(stage.job, .running)
            await stage.take(for: .seconds(1))
            #expect(stage.submissions[stage.job.id]?.state == .running)
            #expect(stage.router.retries == [.seconds(10)] && stage.router.buried.isEmpty)
            let copy = stage.router.deliveries.first
            #expect(copy?.pool == "text" && copy?.lane == .batch && copy?.body == stage.job.body)
            #expect(stage.connection.calls.elements == [.acknowledge(7)] && stage.store.announced.isEmpty)
        }
    }

    @Test(
        "a job that has ended well, was cancelled or expired is only acknowledged",
        arguments: [
            JobState.completed, .cancelled, .expired,
        ])
    func ended(_ state: JobState) async {
        await stage { stage in
            stage.submissions.put(stage.job, state)
            await stage.take(for: .seconds(1))
            #expect(stage.router.deliveries.isEmpty && stage.connection.calls.elements == [.acknowledge(7)])
        }
    }

    @Test("a job that had failed is buried and announced again: its worker may have gone before it could do so")
    func failedBefore() async {
        await stage { stage in
            stage.submissions.put(stage.job, .failed)
            await stage.take(for: .seconds(1))
            #expect(stage.router.buried == ["dropped"] && stage.store.announced == [.failed])
            #expect(stage.connection.calls.elements == [.acknowledge(7)])
        }
    }

    @Test("what is no job but names one ends that one's record; what names none is only buried")
    func noJob() async {
        await stage { stage in
            await stage.take(Array("no JSON".utf8), for: .seconds(1))
            #expect(stage.submissions[stage.job.id]?.state == .failed && stage.router.buried == ["dropped"])
            await stage.take(Array("no JSON".utf8), id: .some(nil), key: "of.no.lane", for: .seconds(1))
            #expect(stage.router.buried == ["dropped", "dropped"] && stage.submissions.jobs.count == 1)
            #expect(stage.connection.calls.elements == [.acknowledge(7), .acknowledge(7)])
        }
    }

    @Test(
        "what cannot be put where it belongs is kept for a while and then handed back, never acknowledged",
        arguments: [
            JobState.queued, .running,
        ])
    func noPlace(_ state: JobState) async {
        await stage { stage in
            stage.submissions.put(stage.job, state)
            stage.router.confirm(false)
            await stage.take(for: .seconds(4))
            #expect(stage.connection.calls.elements.isEmpty)
            await stage.scheduler.sleepUncancelled(for: .seconds(2))
            #expect(stage.connection.calls.elements == [.requeue(7)] && stage.store.announced.isEmpty)
        }
    }

    @Test("a store that is away, or that does not take the announcement, has the message come again")
    func storeAway() async {
        let error = StoreError("away", isCertainlyUndone: true, isRetryable: true)
        await stage { stage in
            stage.submissions.fail(.reject, with: error)
            await stage.take(for: .seconds(6))
            #expect(stage.connection.calls.elements == [.requeue(7)] && stage.router.deliveries.isEmpty)
            stage.store.fail(.announce, with: error)
            await stage.take(for: .seconds(6))
            #expect(stage.connection.calls.elements == [.requeue(7), .requeue(7)])
            await stage.take(for: .seconds(6))
            #expect(stage.connection.calls.elements.last == .acknowledge(7) && stage.store.announced == [.failed])
        }
    }

    @Test("a consumer that RabbitMQ ended is attached again, after its queue was declared")
    func cancelled() async {
        await stage { stage in
            // Nothing to attach to yet.
            stage.consumer.cancelled()
            await stage.scheduler.sleepUncancelled(for: .seconds(1))
            #expect(stage.connection.calls.elements.isEmpty)
            await #expect(throws: Never.self) { try await stage.consumer.attach(to: stage.connection) }
            let consume = FakeConnection.Call.consume(Topology.dropped, prefetch: 4)
            #expect(stage.connection.calls.elements == [consume])
            stage.consumer.cancelled()
            await stage.scheduler.sleepUncancelled(for: .seconds(1))
            #expect(stage.connection.calls.elements == [consume, .declare, consume])
        }
    }

    @Test("a connection that is lost while the consumer is attached again is left to whoever makes the next")
    func lostMeanwhile() async {
        await stage(refuses: { $0 == .declare }) { stage in
            await #expect(throws: Never.self) { try await stage.consumer.attach(to: stage.connection) }
            stage.consumer.cancelled()
            await stage.scheduler.sleepUncancelled(for: .seconds(60))
            #expect(stage.connection.calls.elements == [.consume(Topology.dropped, prefetch: 4), .declare])
        }
    }
}
