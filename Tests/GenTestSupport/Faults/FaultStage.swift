import Foundation
package import GenShared
import Synchronization

/// What one fault test plays on: servers that may be harmed, a proxy before each, a pool and a history of its own.
package final class FaultStage: Sendable {
    package let name: String
    package let servers: FaultServers
    /// Before RabbitMQ; workers and programs of the test go through it.
    package let amqp: FaultProxy
    /// Before Redis, likewise.
    package let redis: FaultProxy
    package let pool: String
    package let history: FaultHistory
    /// A client that no proxy harms.
    package let client: Client
    let state = Mutex(State())

    struct State {
        var jobs: [JobID] = []
        var watching: [Task<Void, Never>] = []
        /// Those that run, as far as the test knows.
        var workers: [WorkerProgram] = []
        var everyWorker: [WorkerProgram] = []
        var watchers = 0
    }

    private init(name: String, servers: FaultServers) throws {
        self.name = name
        self.servers = servers
        let (amqpURL, redisURL) = (try servers.amqp(), try servers.redis())
        amqp = try FaultProxy(to: amqpURL.port)
        redis = try FaultProxy(to: redisURL.port)
        pool = TestEnvironment.uniqueName("f")
        let folder = try TestEnvironment.value("GEN_TEST_SERVERS")
        history = try FaultHistory(path: "\(folder)/history-\(name)-\(pool).jsonl")
        client = Client(amqp: amqpURL, redis: redisURL, name: "fault-test")
    }

    /// Plays one scenario: heals the servers first, ends every program afterwards.
    ///
    /// The history stays where it failed, and its place is printed.
    /// - Parameter servers: the run's own, unless a test has made others.
    package static func play(
        _ name: String, servers: FaultServers? = nil, _ body: (FaultStage) async throws -> Void
    ) async throws {
        // Not `??`: its right side could not wait.
        let healthy = if let servers { servers } else { try await FaultServers.healthy() }
        let stage = try FaultStage(name: name, servers: healthy)
        do {
            try await body(stage)
            await stage.clear()
            // Temporary: no harm if it stays.
            try? FileManager.default.removeItem(atPath: stage.history.path)
        } catch {
            await stage.clear()
            stage.keepLogs()
            print("history of \(name): \(stage.history.path)")
            throw error
        }
    }

    /// What the workers wrote, beside the history.
    private func keepLogs() {
        for (number, worker) in state.withLock({ $0.everyWorker }).enumerated() {
            let file = URL(filePath: "\(history.path).worker-\(number + 1)")
            // The failure that is being reported matters more than this.
            try? Data(worker.program.errors.utf8).write(to: file)
        }
    }

    private func clear() async {
        let (watching, workers) = state.withLock { ($0.watching, $0.workers) }
        for task in watching { task.cancel() }
        for task in watching { await task.value }
        for worker in workers { worker.program.signal(SIGKILL) }
        await client.close()
        // What the test asked for is judged; that a server that it froze cannot be thawed shows in the next one.
        for server in [servers.rabbitmq, servers.redis] { do { try await server.thaw() } catch {} }
    }

    // MARK: Programs

    /// What a program needs to find the servers, through the proxies unless told otherwise.
    package func environment(throughProxies: Bool = true) throws -> [String: String] {
        var environment = ProcessInfo.processInfo.environment
        environment["GEN_CONFIG"] = nil
        environment["GEN_MODEL"] = nil
        environment["GEN_AMQP_URL"] =
            throughProxies ? FaultServers.text(servers.amqpURL, port: amqp.port) : servers.amqpURL
        environment["GEN_REDIS_URL"] =
            throughProxies ? FaultServers.text(servers.redisURL, port: redis.port) : servers.redisURL
        return environment
    }

    /// The echo says the job's text and nothing else.
    package static let plainTemplate = #"templates: { reply: { user: "{text}", system: "" } },"#

    /// A worker of this test's pool.
    /// - Parameter backend: the inside of its entry in the configuration.
    package func worker(
        slots: Int = 8, backend: String = #"type: "echo""#, more: String = "", throughProxies: Bool = true,
        extra: [String: String] = [:], waits: Bool = true
    ) async throws -> WorkerProgram {
        var environment = try environment(throughProxies: throughProxies)
        environment.merge(extra) { $1 }
        let worker = try await WorkerProgram.start(
            pool: pool, slots: slots, backend: backend, more: Self.plainTemplate + more, environment: environment,
            waits: waits)
        state.withLock { state in
            state.workers.append(worker)
            state.everyWorker.append(worker)
        }
        return worker
    }

    /// Runs `gendispatcher`, through the proxies unless told otherwise.
    package func dispatcher(
        _ arguments: String..., throughProxies: Bool = true, extra: [String: String] = [:],
        within limit: Duration = .seconds(60)
    ) async throws -> (status: Int32, output: String, errors: String) {
        var environment = try environment(throughProxies: throughProxies)
        environment.merge(extra) { $1 }
        return try await run(
            TestEnvironment.program("gendispatcher"), arguments, environment: environment, within: limit)
    }

    /// Declares the pool's queues before any worker does.
    package func setUp() async throws {
        let result = try await dispatcher("setup", "--pool", pool, throughProxies: false)
        guard result.status == 0 else { throw FaultError("setup: \(result.errors)") }
    }

    package func note(_ fault: String) { history.add(.fault(fault)) }
}
