import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

/// How often a worker connects, and when it says that it serves.
@Suite("Consumer link", .timeLimit(.minutes(1)))
struct ConsumerLinkTests {
    private static let away = AMQPError(.unreachable, "cannot reach RabbitMQ")

    /// The pauses between the attempts of so much time, where each fares as planned.
    private func pauses(
        in time: Duration, _ plan: @escaping @Sendable (Int) -> FakeConnector.Plan
    ) async -> [Duration] {
        let scheduler = ManualScheduler()
        return await scheduler.run {
            let fixture = LinkFixture(scheduler, plan: plan)
            await fixture.run { await fixture.pass(time) }
            return fixture.connector.pauses
        }
    }

    /// Whether each is the next of a backoff: doubling from 200 ms to 15 s, at most half taken off.
    private func grow(_ pauses: [Duration], offset: Duration = .zero) -> Bool {
        pauses.enumerated().allSatisfy { index, pause in
            let whole = min(Duration.milliseconds(200 << min(index, 10)), .seconds(15))
            let rest = pause - offset
            return rest >= whole / 2 && rest <= whole
        }
    }

    @Test("a connection that is lost as soon as it is made is not made again at once, and the pause grows")
    func lostAtOnce() async {
        let pauses = await pauses(in: .seconds(120)) { _ in .live(.zero) }
        #expect(pauses.count > 10 && grow(pauses), "\(pauses)")
    }

    @Test("so it is where RabbitMQ cannot be reached, also where finding out takes longer than a good connection lives")
    func unreachable() async {
        for delay in [Duration.zero, .seconds(12)] {
            let pauses = await pauses(in: .seconds(300)) { _ in .fail(Self.away, after: delay) }
            #expect(pauses.count > 10 && grow(pauses, offset: delay), "\(pauses)")
        }
    }

    @Test("after a life of more than 10 s the pause is small again, after a shorter one it is not")
    func proven() async {
        let long = await pauses(in: .seconds(200)) { $0 == 6 ? .live(.seconds(11)) : .live(.zero) }
        #expect(grow(Array(long.prefix(6))) && long[6] - .seconds(11) <= .milliseconds(200), "\(long)")
        #expect(grow(Array(long.dropFirst(7).prefix(3)).map { $0 / 2 }), "\(long)")
        let short = await pauses(in: .seconds(200)) { $0 == 6 ? .live(.seconds(9)) : .live(.zero) }
        #expect(short[6] - .seconds(9) >= .seconds(6), "\(short)")
    }

    @Test(
        "what RabbitMQ refuses is tried again after 5 s at the earliest",
        arguments: [
            AMQPError(.unauthorized, "refuses user"), AMQPError(.refused(403), "may not consume"),
        ])
    func refused(_ error: AMQPError) async {
        let pauses = await pauses(in: .seconds(60)) { _ in .fail(error) }
        #expect(pauses.count >= 3 && pauses.allSatisfy { $0 >= .seconds(5) && $0 <= .seconds(15) }, "\(pauses)")
    }

    @Test("a connection whose topology or dropped consumer fails is closed, and counts as lost")
    func setUpFails() async {
        let scheduler = ManualScheduler()
        await scheduler.run {
            let fixture = LinkFixture(scheduler) { number in
                switch number {
                case 0: .serve(refuses: { $0 == .declare })
                case 1: .serve(refuses: { if case .consume(Topology.dropped, _) = $0 { true } else { false } })
                default: .serve()
                }
            }
            await fixture.run {
                await fixture.pass(.seconds(30))
                let made = fixture.connector.connections.elements
                #expect(made.count == 3)
                #expect(made[0].calls.elements == [.declare, .close])
                #expect(made[1].calls.elements.last == .close && !made[1].consumers.contains("text.interactive"))
                #expect(made[2].consumers == [Topology.dropped, "text.interactive", "text.batch"])
                #expect(fixture.readiness.reason == nil)
            }
            #expect(fixture.connector.connections.elements.last?.calls.elements.last == .close)
        }
    }

    @Test("a worker is ready when every pool's interactive consumer is attached, not before, and not after a loss")
    func readiness() async {
        let scheduler = ManualScheduler()
        await scheduler.run {
            let fixture = LinkFixture(scheduler, pools: ["one", "two"]) { number in
                switch number {
                // Of two pools one is served: that is not enough.
                case 1: .serve(refuses: { if case .consume("two.interactive", _) = $0 { true } else { false } })
                default: .serve()
                }
            }
            #expect(fixture.readiness.reason?.contains("not connected") == true)
            await fixture.run {
                await fixture.pass(.milliseconds(1))
                #expect(fixture.readiness.reason == nil)
                fixture.connector.connections.elements[0].lose(AMQPError(.connectionLost, "pulled out"))
                await fixture.pass(.milliseconds(1))
                #expect(fixture.readiness.reason == "one: pulled out; two: pulled out")
                await fixture.connector.connections.wait(for: 2)
                await fixture.pass(.milliseconds(1))
                #expect(fixture.readiness.reason?.contains("two: ") == true)
                await fixture.pass(.seconds(60))
                #expect(fixture.readiness.reason == nil && fixture.connector.attempts.count == 3)
            }
        }
    }

    @Test("a worker whose slots are all taken when it connects again is ready: it only waits for a slot")
    func fullSlots() async {
        let scheduler = ManualScheduler()
        await scheduler.run {
            let fixture = LinkFixture(scheduler, slots: 1) { _ in .serve() }
            await fixture.run {
                await fixture.pass(.seconds(1))
                let job = Job(id: JobID(atMilliseconds: 1), kind: .reply, input: JobInput(text: "x"))
                let first = fixture.connector.connections.elements[0]
                first.deliver(fixture.delivery(job, tag: 1))
                await fixture.pass(.seconds(1))
                first.lose()
                await fixture.pass(.seconds(1))
                let second = fixture.connector.connections.elements[1]
                #expect(second.consumers == [Topology.dropped] && fixture.readiness.reason == nil)
            }
        }
    }
}
