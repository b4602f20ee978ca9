import Foundation
package import GenShared

/// A RabbitMQ or a Redis that tests may harm: started, killed and frozen by `ops/server`.
package struct FaultServer: Sendable {
    /// Which server it is; the name that `ops/server` knows.
    package enum Kind: String, Sendable {
        case rabbitmq
        case redis
    }

    package let kind: Kind
    /// Its data, its configuration and its log.
    package let folder: String

    package init(_ kind: Kind, folder: String) {
        self.kind = kind
        self.folder = folder
    }

    /// Starts it, or leaves it alone if it runs.
    /// - Returns: its URL.
    @discardableResult
    package func start() async throws -> String { try await command("start", within: .seconds(180)) }

    /// As a crash does; returns when it is gone.
    package func kill() async throws { try await command("kill") }

    /// Asks it to end, and waits.
    package func stop() async throws { try await command("stop", within: .seconds(90)) }

    /// Stops the process where it stands: its connections stay open and nothing answers.
    package func freeze() async throws { try await command("freeze") }

    /// Lets it go on.
    package func thaw() async throws { try await command("thaw") }

    /// `rabbitmqctl` or `redis-cli` of this server.
    /// - Returns: what it printed.
    @discardableResult
    package func control(_ arguments: String...) async throws -> String {
        try await command("control", arguments, within: .seconds(60))
    }

    package func url() async throws -> String { try await command("url") }

    @discardableResult
    private func command(
        _ name: String, _ arguments: [String] = [], within limit: Duration = .seconds(30)
    ) async throws -> String {
        let result = try await run(
            "\(TestEnvironment.value("GEN_TEST_OPS"))/server", [name, kind.rawValue, folder] + arguments,
            environment: ProcessInfo.processInfo.environment, within: limit)
        guard result.status == 0 else {
            throw FaultError(
                "ops/server \(name) \(kind.rawValue): \(result.errors.suffix(800))\(result.output.suffix(400))")
        }
        return String(result.output.trimmingCharacters(in: .whitespacesAndNewlines))
    }
}

/// The servers that `ops/faults` started for the run; whatever a test does to them, the next one finds them well.
package struct FaultServers: Sendable {
    package let rabbitmq: FaultServer
    package let redis: FaultServer
    package let amqpURL: String
    package let redisURL: String

    /// Finds them, and mends what an earlier test may have left.
    package static func healthy() async throws -> FaultServers {
        let folder = try TestEnvironment.value("GEN_TEST_SERVERS")
        let rabbitmq = FaultServer(.rabbitmq, folder: "\(folder)/rabbitmq")
        let redis = FaultServer(.redis, folder: "\(folder)/redis")
        for server in [rabbitmq, redis] {
            // One that was killed cannot be thawed, and needs it not.
            do { try await server.thaw() } catch {}
        }
        return FaultServers(
            rabbitmq: rabbitmq, redis: redis, amqpURL: try await rabbitmq.start(), redisURL: try await redis.start())
    }

    package init(rabbitmq: FaultServer, redis: FaultServer, amqpURL: String, redisURL: String) {
        self.rabbitmq = rabbitmq
        self.redis = redis
        self.amqpURL = amqpURL
        self.redisURL = redisURL
    }

    package func amqp(port: Int? = nil) throws -> AMQPURL {
        var url = try AMQPURL(amqpURL)
        url.port = port ?? url.port
        return url
    }

    package func redis(port: Int? = nil) throws -> RedisURL {
        var url = try RedisURL(redisURL)
        url.port = port ?? url.port
        return url
    }

    /// The URL with another port, as a program reads it.
    package static func text(_ url: String, port: Int) -> String {
        guard let colon = url.lastIndex(of: ":") else { return url }
        let rest = url[url.index(after: colon)...].drop { $0.isNumber }
        return "\(url[...colon])\(port)\(rest)"
    }
}
