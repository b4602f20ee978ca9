import GenShared
import GenTestSupport
import Testing

/// Servers of which the address names several hosts.
@Suite("Several hosts", .timeLimit(.minutes(2)))
struct SeveralHostsTests {
    init() { ProcessSetup.run() }

    /// A host that takes a connection and goes away.
    private static func closing() -> ScriptedServer { ScriptedServer { _ in } }
    /// A host that takes a connection and says nothing.
    private static func silent() -> ScriptedServer { ScriptedServer { _ = $0.waitForClose(seconds: 60) } }

    @Test("RabbitMQ: of a dead host, one that hangs up and one that serves, the last is found, in whatever order")
    func amqp() async throws {
        let closing = Self.closing()
        let url = try hosts(TestEnvironment.amqpURL(), before: [1, closing.port])
        // The order is random; often enough to have met each.
        for _ in 0..<12 {
            let connection = AMQPConnection(name: "test") { _ in }
            try await connection.open(url: url, connectionName: "test", confirms: false)
            #expect(!(await connection.serverVersion.isEmpty))
            await connection.close()
        }
    }

    @Test("RabbitMQ: a host that takes the connection and says nothing does not keep from the others")
    func amqpSilent() async throws {
        let silent = Self.silent()
        let url = try hosts(TestEnvironment.amqpURL(), before: [silent.port])
        let clock = ContinuousClock()
        for _ in 0..<4 {
            let connection = AMQPConnection(name: "test") { _ in }
            let began = clock.now
            try await connection.open(url: url, connectionName: "test", confirms: false)
            // 2 s; all the rest is for a machine that is crowded by other tests.
            #expect(clock.now - began < .seconds(20))
            await connection.close()
        }
    }

    @Test("RabbitMQ: where no host serves the last one's failure is told; refused credentials are final")
    func amqpFailures() async throws {
        var url = try hosts(TestEnvironment.amqpURL(), before: [])
        url.password = Secret("wrong")
        let dead = try AMQPURL("amqp://127.0.0.1:1,127.0.0.1:2")
        for (url, code) in [(url, AMQPError.Code.unauthorized), (dead, .unreachable)] {
            let connection = AMQPConnection(name: "test") { _ in }
            do {
                try await connection.open(url: url, connectionName: "test", confirms: false)
                Issue.record("connected")
            } catch { #expect(error.code == code && !error.message.contains("wrong"), "\(error)") }
        }
    }

    @Test("Redis: a dead host, one that hangs up and one that refuses are passed over for the one that serves")
    func redis() async throws {
        let closing = Self.closing()
        let refusing = ScriptedServer { connection in
            while connection.receive() != nil { connection.send("-NOPERM this user has no permissions\r\n") }
        }
        let url = try hosts(TestEnvironment.redisURL(), before: [1, closing.port, refusing.port])
        try await expectPrimary(url)
    }

    @Test("Redis: a replica is passed over for the primary, although it comes first and serves reads")
    func replica() async throws {
        let real = try TestEnvironment.redisURL()
        try await withReplica(of: real.hosts[0].port) { port in
            try await expectPrimary(hosts(real, before: [port]))
            // The replica alone is no primary among several: that is said, with its address.
            let none = try RedisURL("redis://127.0.0.1:\(port),127.0.0.1:1")
            let connection = RedisConnection(url: none, name: "test", scripts: [])
            await #expect(throws: RedisError.self) { try await connection.send(RedisCommand("PING")) }
            await connection.close()
        }
    }

    @Test("Redis: a host that refuses to tell its role is named with what it said")
    func roleRefused() async throws {
        let refusing = ScriptedServer { connection in
            while connection.receive() != nil { connection.send("-NOPERM no permissions to run 'role'\r\n") }
        }
        let url = try RedisURL("redis://127.0.0.1:1,127.0.0.1:\(refusing.port)")
        let connection = RedisConnection(url: url, name: "test", scripts: [])
        do {
            _ = try await connection.send(RedisCommand("PING"))
            Issue.record("connected")
        } catch { #expect("\(error)".contains("NOPERM") && !"\(error)".contains("replica"), "\(error)") }
        await connection.close()
    }

    private func expectPrimary(_ url: RedisURL) async throws {
        let connection = RedisConnection(url: url, name: "test", scripts: [])
        let role = try await connection.send(RedisCommand("ROLE"))
        #expect(role.array?.first?.string == "master")
        await connection.close()
    }

    private func hosts(_ url: AMQPURL, before ports: [Int]) throws -> AMQPURL {
        let all = ports.map { "127.0.0.1:\($0)" } + url.hosts.map(\.description) + url.hosts.map(\.description)
        var result = try AMQPURL("amqp://\(all.joined(separator: ","))")
        (result.user, result.password, result.virtualHost) = (url.user, url.password, url.virtualHost)
        return result
    }

    private func hosts(_ url: RedisURL, before ports: [Int]) throws -> RedisURL {
        let all = ports.map { "127.0.0.1:\($0)" } + url.hosts.map(\.description)
        return try RedisURL("redis://\(all.joined(separator: ","))/\(url.database)")
    }

    private func withReplica(of primary: Int, _ body: (Int) async throws -> Void) async throws {
        let port = try #require(FreePort.find())
        let program = try RunningProgram(
            "/usr/bin/redis-server",
            [
                "--bind", "127.0.0.1", "--port", "\(port)", "--save", "", "--dir", "/tmp", "--dbfilename",
                "gen-replica-\(port).rdb", "--replicaof", "127.0.0.1", "\(primary)",
            ], environment: [:])
        do {
            try await program.waitFor("Ready to accept connections", within: .seconds(30))
            try await body(port)
            program.signal(15)
            try await program.end(within: .seconds(30))
        } catch {
            program.signal(9)
            throw error
        }
    }
}
