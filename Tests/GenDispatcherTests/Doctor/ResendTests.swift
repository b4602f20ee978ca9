import GenShared
import Testing

@testable import GenDispatcher

/// Which lanes lack messages.
@Suite("Resend")
struct ResendTests {
    private let one = OpenRecord.Route(pool: "one", lane: .interactive)
    private let two = OpenRecord.Route(pool: "two", lane: .batch)

    private func short(_ open: [Int], stale: [Int], queues: [Int?], tiers: Int) -> Set<OpenRecord.Route> {
        let routes = [one, two]
        var counts: [OpenRecord.Route: Resend.Count] = [:]
        var inQueues: [OpenRecord.Route: Int] = [:]
        for (index, route) in routes.enumerated() {
            counts[route] = Resend.Count(open: open[index], stale: stale[index])
            inQueues[route] = queues[index]
        }
        return Resend.short(counts, inQueues: inQueues, inTiers: tiers)
    }

    @Test("where queues hold at least as many messages as jobs wait, nothing is missing")
    func enough() {
        #expect(short([3, 2], stale: [3, 2], queues: [3, 5], tiers: 0).isEmpty)
    }

    @Test("a lane with too few messages lacks some, whatever the others have too many")
    func lacking() {
        #expect(short([3, 2], stale: [1, 2], queues: [2, 9], tiers: 0) == [one])
        #expect(short([3, 0], stale: [3, 0], queues: [nil, nil], tiers: 0) == [one])
    }

    @Test("messages in the tiers count once for all lanes together")
    func tiers() {
        #expect(short([3, 2], stale: [3, 2], queues: [2, 1], tiers: 2).isEmpty)
        #expect(short([3, 2], stale: [3, 2], queues: [2, 1], tiers: 1) == [one, two])
    }

    @Test("a job that needs no message any more is not told as published")
    func outcomes() {
        var outcomes = Resend.Outcomes()
        for outcome in [.published, .skipped, .failed("a: full"), .published, .failed("b: full")] as [Resend.Outcome] {
            outcomes.count(outcome)
        }
        #expect(outcomes == Resend.Outcomes(published: 2, skipped: 1, failed: 2, firstFailure: "a: full"))
        #expect(outcomes.line == "2 messages published again; 1 jobs need none, or have none any more.")
        #expect(Resend.Outcomes(published: 1).line == "1 messages published again.")
    }

    @Test("a lane whose jobs are all young lacks nothing that can be told")
    func young() {
        #expect(short([3, 2], stale: [0, 2], queues: [0, 0], tiers: 0) == [two])
    }
}
