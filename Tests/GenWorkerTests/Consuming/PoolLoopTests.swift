import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

/// A pool between its connection and its jobs.
@Suite("Pool loop", .timeLimit(.minutes(1)))
struct PoolLoopTests {
    /// When that consumer was asked for.
    private func times(_ tag: String, _ fixture: LinkFixture) -> [Duration] {
        fixture.connector.calls.elements.compactMap { entry in
            if case .consume(tag, _) = entry.call { entry.at } else { nil }
        }
    }

    @Test(
        "a lane that refuses its consumer is left alone for a growing pause, while the other goes on",
        arguments: [
            Lane.interactive, .batch,
        ])
    func refusingLane(_ lane: Lane) async {
        let scheduler = ManualScheduler()
        await scheduler.run {
            let other: Lane = lane == .batch ? .interactive : .batch
            let fixture = LinkFixture(scheduler) { _ in
                .serve(refuses: { if case .consume("text.\(lane.rawValue)", _) = $0 { true } else { false } })
            }
            await fixture.run {
                await fixture.pass(.seconds(600))
                let tries = times("text.\(lane.rawValue)", fixture)
                let pauses = zip(tries, tries.dropFirst()).map { $1 - $0 }
                // 12 s to 2 min, half of it taken off at most.
                #expect((5...12).contains(tries.count), "\(tries)")
                #expect(zip(pauses, [6, 12, 24, 48]).allSatisfy { $0 >= .seconds($1) }, "\(pauses)")
                #expect((fixture.readiness.reason == nil) == (lane == .batch))
                // Each try costs the connection; the other lane is back with the next, whatever the time is.
                let attempts = fixture.connector.attempts.elements
                let served = times("text.\(other.rawValue)", fixture)
                for attempt in attempts.dropFirst() { #expect(served.contains(attempt), "\(attempt)") }
                #expect(
                    fixture.connector.connections.elements.last?.consumers.contains("text.\(other.rawValue)") == true)
            }
        }
    }

    @Test("a lane that takes its consumer again is attached, and its next refusal pauses for a short time only")
    func refusesNoMore() async {
        let scheduler = ManualScheduler()
        await scheduler.run {
            let fixture = LinkFixture(scheduler) { [scheduler] _ in
                .serve(refuses: { call in
                    guard case .consume("text.batch", _) = call else { return false }
                    return scheduler.elapsed < .seconds(60) || scheduler.elapsed == .seconds(300)
                })
            }
            await fixture.run {
                await fixture.pass(.seconds(300))
                let connection = fixture.connector.connections.elements.last
                #expect(connection?.consumers.contains("text.batch") == true && fixture.readiness.reason == nil)
                connection?.endConsumer("text.batch")
                // The first pause is 12 s at most; the lane's own would have grown to more than 24 s.
                await fixture.pass(.seconds(13))
                #expect(times("text.batch", fixture).contains(.seconds(300)))
                #expect(fixture.connector.connections.elements.last?.consumers.contains("text.batch") == true)
            }
        }
    }

    @Test("a spoilt record does not pause the pool: its message is acknowledged, and the next job runs at once")
    func spoiltRecord() async {
        let scheduler = ManualScheduler()
        await scheduler.run {
            let fixture = LinkFixture(scheduler) { _ in .serve() }
            fixture.store.fail(
                .claim,
                with: StoreError("spoilt", isCertainlyUndone: true, isRetryable: false, isSpoiltRecord: true))
            await fixture.run {
                await fixture.pass(.seconds(1))
                let connection = fixture.connector.connections.elements[0]
                let jobs = (1...2).map {
                    Job(id: JobID(atMilliseconds: $0), kind: .reply, input: JobInput(text: "x"))
                }
                connection.deliver(fixture.delivery(jobs[0], tag: 1))
                await fixture.pass(.milliseconds(1))
                #expect(connection.calls.elements.last == .acknowledge(1) && fixture.router.buried == ["internal"])
                connection.deliver(fixture.delivery(jobs[1], tag: 2))
                await fixture.pass(.milliseconds(1))
                #expect(fixture.store.jobState == .running && fixture.readiness.reason == nil)
                #expect(connection.consumers.contains("text.interactive"))
            }
        }
    }

    @Test("a store that is away pauses the pool, which is not ready until it takes jobs again")
    func storeAway() async {
        let scheduler = ManualScheduler()
        await scheduler.run {
            let fixture = LinkFixture(scheduler) { _ in .serve() }
            fixture.store.fail(.claim, with: StoreError("Redis is away", isCertainlyUndone: true, isRetryable: true))
            await fixture.run {
                await fixture.pass(.seconds(1))
                let connection = fixture.connector.connections.elements[0]
                let job = Job(id: JobID(atMilliseconds: 1), kind: .reply, input: JobInput(text: "x"))
                connection.deliver(fixture.delivery(job, tag: 1))
                await fixture.pass(.milliseconds(1))
                #expect(connection.calls.elements.contains(.requeue(1)))
                #expect(connection.consumers == [Topology.dropped])
                #expect(fixture.readiness.reason == "text: Redis is away")
                await fixture.pass(.seconds(3))
                #expect(connection.consumers.contains("text.interactive") && fixture.readiness.reason == nil)
            }
        }
    }

    @Test("a consumer that RabbitMQ ended is attached again on the same connection, of a lane and of what was dropped")
    func endedConsumers() async {
        let scheduler = ManualScheduler()
        await scheduler.run {
            let fixture = LinkFixture(scheduler) { _ in .serve() }
            await fixture.run {
                await fixture.pass(.seconds(1))
                let connection = fixture.connector.connections.elements[0]
                for tag in ["text.interactive", "text.batch", Topology.dropped] {
                    let before = times(tag, fixture).count
                    connection.endConsumer(tag)
                    await fixture.pass(.seconds(1))
                    #expect(times(tag, fixture).count == before + 1, "\(tag)")
                }
                #expect(fixture.connector.attempts.count == 1)
            }
        }
    }
}
