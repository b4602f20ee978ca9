/// The exchanges and queues that gencluster needs, with the arguments that RabbitMQ fixes for ever at declaration
/// (which is why the names carry a version).
package struct Topology: Sendable {
    package enum Argument: Sendable, Equatable {
        case text(String)
        case integer(Int)
    }

    package struct Exchange: Sendable, Equatable {
        package var name: String
        package var type: String
    }

    package struct QueueDeclaration: Sendable, Equatable {
        package var name: String
        package var arguments: [String: Argument]
    }

    package struct Binding: Sendable, Equatable {
        package var queue: String
        package var exchange: String
        package var key: String
    }

    package static let jobs = "gen.jobs.v1"
    package static let dropped = "gen.dropped.v1"
    package static let dead = "gen.dead.v1"

    /// The waits of the retry tiers, shortest first.
    package static let tiers: [(name: String, delay: Duration)] = [
        ("2s", .seconds(2)), ("10s", .seconds(10)), ("1m", .seconds(60)), ("10m", .seconds(600)),
    ]

    /// The queue of a lane of a pool.
    package static func queue(pool: String, lane: Lane) -> String { "\(jobs).\(routingKey(pool: pool, lane: lane))" }
    /// The routing key of a lane of a pool.
    package static func routingKey(pool: String, lane: Lane) -> String { "\(pool).\(lane.rawValue)" }
    /// The exchange and queue of the shortest tier that waits at least that long, or of the longest.
    package static func tier(for delay: Duration) -> String {
        let tier = tiers.first { $0.delay >= delay } ?? tiers[tiers.count - 1]
        return "gen.retry.v1.\(tier.name)"
    }

    package private(set) var exchanges: [Exchange] = []
    package private(set) var queues: [QueueDeclaration] = []
    package private(set) var bindings: [Binding] = []

    /// Everything for these pools.
    package init(pools: [String]) {
        exchanges.append(Exchange(name: Self.jobs, type: "direct"))
        // RabbitMQ 4 deletes what came back 20 times, and from here there is nowhere else to go.
        addFanout(Self.dropped, ["x-delivery-limit": .integer(1_000_000)])
        addFanout(
            Self.dead,
            [
                "x-max-length-bytes": .integer(1 << 30), "x-overflow": .text("drop-head"),
                "x-message-ttl": .integer(14 * 86_400_000), "x-delivery-limit": .integer(1_000_000),
            ])
        for tier in Self.tiers {
            addFanout(
                "gen.retry.v1.\(tier.name)",
                [
                    "x-message-ttl": .integer(tier.delay.milliseconds), "x-dead-letter-exchange": .text(Self.jobs),
                    "x-dead-letter-strategy": .text("at-least-once"), "x-overflow": .text("reject-publish"),
                ])
        }
        for pool in pools {
            for lane in Lane.allCases { addLane(pool, lane) }
        }
    }

    private mutating func addLane(_ pool: String, _ lane: Lane) {
        let name = Self.queue(pool: pool, lane: lane)
        queues.append(
            QueueDeclaration(
                name: name,
                arguments: [
                    "x-queue-type": .text("quorum"), "x-delivery-limit": .integer(1000),
                    "x-dead-letter-exchange": .text(Self.dropped), "x-dead-letter-strategy": .text("at-least-once"),
                    "x-overflow": .text("reject-publish"), "x-consumer-timeout": .integer(7_200_000),
                ]))
        bindings.append(
            Binding(queue: name, exchange: Self.jobs, key: Self.routingKey(pool: pool, lane: lane)))
    }

    private mutating func addFanout(_ name: String, _ arguments: [String: Argument]) {
        exchanges.append(Exchange(name: name, type: "fanout"))
        var all = arguments
        all["x-queue-type"] = .text("quorum")
        queues.append(QueueDeclaration(name: name, arguments: all))
        bindings.append(Binding(queue: name, exchange: name, key: ""))
    }
}
