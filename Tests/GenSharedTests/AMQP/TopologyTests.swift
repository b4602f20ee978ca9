import Testing

@testable import GenShared

/// The names and arguments of the contract: RabbitMQ never lets them be altered, so a slip here is for ever.
@Suite("Topology")
struct TopologyTests {
    private typealias Argument = Topology.Argument
    private let topology = Topology(pools: ["text", "large_2"])

    private static let fanouts = [
        "gen.dropped.v1", "gen.dead.v1", "gen.retry.v1.2s", "gen.retry.v1.10s", "gen.retry.v1.1m", "gen.retry.v1.10m",
    ]
    private static let lanes = [
        ("text.interactive", "gen.jobs.v1.text.interactive"), ("text.batch", "gen.jobs.v1.text.batch"),
        ("large_2.interactive", "gen.jobs.v1.large_2.interactive"), ("large_2.batch", "gen.jobs.v1.large_2.batch"),
    ]

    private func arguments(_ name: String) throws -> [String: Argument] {
        try #require(topology.queues.first { $0.name == name }).arguments
    }

    @Test("one direct exchange for jobs, a fanout for each tier, for what was dropped and for the dead")
    func exchanges() {
        #expect(topology.exchanges.first == Topology.Exchange(name: "gen.jobs.v1", type: "direct"))
        #expect(topology.exchanges.dropFirst().allSatisfy { $0.type == "fanout" })
        #expect(Set(topology.exchanges.dropFirst().map(\.name)) == Set(Self.fanouts))
    }

    @Test("a queue for each lane of each pool, bound by pool and lane; a fanout's queue has its name")
    func bindings() {
        #expect(topology.queues.count == Self.fanouts.count + Self.lanes.count)
        for (key, queue) in Self.lanes {
            #expect(topology.bindings.contains(.init(queue: queue, exchange: "gen.jobs.v1", key: key)))
        }
        for name in Self.fanouts { #expect(topology.bindings.contains(.init(queue: name, exchange: name, key: ""))) }
        #expect(topology.bindings.count == topology.queues.count)
        #expect(Set(topology.bindings.map(\.queue)) == Set(topology.queues.map(\.name)))
    }

    @Test("lanes: delivery limit 1000, at-least-once into the dropped, full queues refuse, two hours for an ack")
    func lanes() throws {
        for (_, queue) in Self.lanes {
            #expect(
                try arguments(queue) == [
                    "x-queue-type": .text("quorum"), "x-delivery-limit": .integer(1000),
                    "x-dead-letter-exchange": .text("gen.dropped.v1"), "x-dead-letter-strategy": .text("at-least-once"),
                    "x-overflow": .text("reject-publish"), "x-consumer-timeout": .integer(7_200_000),
                ])
        }
    }

    @Test("tiers: the wait is the queue's, and the message returns to the jobs under its own key")
    func tiers() throws {
        for (name, milliseconds) in [("2s", 2000), ("10s", 10_000), ("1m", 60_000), ("10m", 600_000)] {
            #expect(
                try arguments("gen.retry.v1.\(name)") == [
                    "x-queue-type": .text("quorum"), "x-message-ttl": .integer(milliseconds),
                    "x-dead-letter-exchange": .text("gen.jobs.v1"), "x-dead-letter-strategy": .text("at-least-once"),
                    "x-overflow": .text("reject-publish"),
                ])
        }
    }

    @Test("the dead are kept for two weeks, within a gibibyte, however often they are looked at")
    func dead() throws {
        #expect(
            try arguments("gen.dead.v1") == [
                "x-queue-type": .text("quorum"), "x-max-length-bytes": .integer(1_073_741_824),
                "x-overflow": .text("drop-head"), "x-message-ttl": .integer(1_209_600_000),
                "x-delivery-limit": .integer(1_000_000),
            ])
        #expect(
            try arguments("gen.dropped.v1") == [
                "x-queue-type": .text("quorum"), "x-delivery-limit": .integer(1_000_000),
            ])
    }

    @Test(
        "a wait takes the shortest tier that is long enough, or the longest",
        arguments: [
            (Duration.zero, "2s"), (.seconds(2), "2s"), (.milliseconds(2001), "10s"), (.seconds(10), "10s"),
            (.seconds(60), "1m"), (.seconds(61), "10m"), (.seconds(86_400), "10m"),
        ])
    func tierChoice(_ delay: Duration, _ name: String) { #expect(Topology.tier(for: delay) == "gen.retry.v1.\(name)") }

    @Test("without pools there are only the shared parts")
    func noPools() { #expect(Topology(pools: []).queues.map(\.name).sorted() == Self.fanouts.sorted()) }
}
