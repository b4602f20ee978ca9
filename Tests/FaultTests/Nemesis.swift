import Foundation
import GenTestSupport

/// Chooses faults by a seed, brings them about, and heals them again: one at a time, as the seed orders.
struct Nemesis {
    /// One thing that can go wrong.
    ///
    /// Where servers or workers are away for a while, how long is chosen, too.
    enum Fault: String, CaseIterable {
        case brokerKilled
        case brokerFrozen
        case connectionsClosed
        case redisKilled
        case redisFrozen
        case clientsKilled
        case subscribersKilled
        case scriptsFlushed
        case workerKilled
        case workerFrozen
        case workerDrained
        case amqpReset
        case amqpBlackhole
        case redisReset
        case redisSlow
    }

    let stage: FaultStage
    let crew: WorkerCrew
    private var generator: SeededGenerator

    /// What may happen: everything, or what is being looked into.
    private let faults: [Fault]

    init(stage: FaultStage, crew: WorkerCrew, seed: UInt64) {
        let only = ProcessInfo.processInfo.environment["GEN_NEMESIS_ONLY"] ?? ""
        let chosen = only.split(separator: ",").compactMap { Fault(rawValue: String($0)) }
        faults = chosen.isEmpty ? Fault.allCases : chosen
        self.stage = stage
        self.crew = crew
        generator = SeededGenerator(seed: seed)
    }

    /// The next fault and its length.
    mutating func next() -> (fault: Fault, seconds: Int, victim: Int) {
        let fault = faults.randomElement(using: &generator) ?? .scriptsFlushed
        return (fault, Int.random(in: 2...14, using: &generator), Int.random(in: 0..<4, using: &generator))
    }

    /// Brings it about, waits, and heals it.
    func perform(_ fault: Fault, seconds: Int, victim: Int) async throws {
        let servers = stage.servers
        switch fault {
        case .brokerKilled:
            try await servers.rabbitmq.kill()
            try await servers.rabbitmq.start()
        case .brokerFrozen:
            try await servers.rabbitmq.freeze()
            await wait(seconds)
            try await servers.rabbitmq.thaw()
        case .connectionsClosed: try await servers.rabbitmq.control("close_all_connections", "nemesis")
        case .redisKilled:
            try await servers.redis.kill()
            await wait(seconds / 2)
            try await servers.redis.start()
        case .redisFrozen:
            try await servers.redis.freeze()
            await wait(seconds)
            try await servers.redis.thaw()
        case .clientsKilled: try await servers.redis.control("CLIENT", "KILL", "TYPE", "normal")
        case .subscribersKilled: try await servers.redis.control("CLIENT", "KILL", "TYPE", "pubsub")
        case .scriptsFlushed: try await servers.redis.control("SCRIPT", "FLUSH")
        case .workerKilled:
            try await crew.signal(victim, SIGKILL)
            try await crew.replace(victim)
        case .workerFrozen:
            try await crew.signal(victim, SIGSTOP)
            await wait(seconds)
            try await crew.signal(victim, SIGCONT)
        case .workerDrained:
            try await crew.signal(victim, SIGTERM)
            try await crew.replace(victim)
        case .amqpReset: stage.amqp.end(.reset)
        case .amqpBlackhole:
            stage.amqp.set(.blackhole)
            await wait(seconds)
            stage.amqp.heal()
        case .redisReset: stage.redis.end(.reset)
        case .redisSlow:
            stage.redis.set(.delay(.milliseconds(200)))
            await wait(seconds)
            stage.redis.heal()
        }
    }

    /// Not to synchronise: a fault lasts a while.
    private func wait(_ seconds: Int) async { do { try await Task.sleep(for: .seconds(seconds)) } catch {} }
}

/// Four workers, of which some are always there; one that goes is replaced.
actor WorkerCrew {
    private let stage: FaultStage
    private let backend: String
    private var workers: [WorkerProgram] = []

    init(stage: FaultStage, backend: String) {
        self.stage = stage
        self.backend = backend
    }

    func start(_ count: Int) async throws {
        for _ in 0..<count { workers.append(try await stage.worker(slots: 16, backend: backend)) }
    }

    func signal(_ number: Int, _ signal: Int32) throws { workers[number].program.signal(signal) }

    /// A new worker takes the place; the old one may still drain.
    func replace(_ number: Int) async throws {
        workers[number] = try await stage.worker(slots: 16, backend: backend, waits: false)
    }
}
