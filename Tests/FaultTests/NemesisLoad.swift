import Foundation
import GenShared
import GenTestSupport
import Synchronization

/// The work that goes on while the nemesis harms: jobs at a steady rate, 200 watchers, a count of ends a second.
final class NemesisLoad: Sendable {
    private struct State {
        var isEnding = false
        var watching = 0
        var open: [JobID] = []
        var number = 0
        var ends: [ContinuousClock.Instant] = []
        var generator: SeededGenerator
    }

    private let stage: FaultStage
    private let clients: [Client]
    private let rate: Double
    private let watchers: Int
    private let state: Mutex<State>

    /// - Parameters:
    ///   - rate: jobs a second.
    ///   - watchers: views that are open at any time.
    init(stage: FaultStage, rate: Double, watchers: Int, seed: UInt64) throws {
        self.stage = stage
        self.rate = rate
        self.watchers = watchers
        let (amqp, redis) = (try stage.servers.amqp(), try stage.servers.redis(port: stage.redis.port))
        clients = (0..<4).map { Client(amqp: amqp, redis: redis, name: "nemesis-\($0)") }
        state = Mutex(State(generator: SeededGenerator(seed: seed &+ 1)))
    }

    /// Hands in jobs and keeps the watchers up until it is told to end; returns when every job has ended.
    func run() async {
        await withDiscardingTaskGroup { group in
            group.addTask { await self.submitJobs() }
            for number in 0..<watchers { group.addTask { await self.watchOneAfterAnother(number) } }
        }
        for client in clients { await client.close() }
    }

    func end() { state.withLock { $0.isEnding = true } }

    /// Jobs that have ended since then.
    func ends(since: ContinuousClock.Instant) -> Int {
        state.withLock { state in state.ends.count { $0 >= since } }
    }

    private var isEnding: Bool { state.withLock { $0.isEnding } }

    private func submitJobs() async {
        await withDiscardingTaskGroup { group in
            let began = ContinuousClock.now
            var count = 0
            while !isEnding {
                // Steady, whatever a submission takes.
                try? await Task.sleep(until: began + .seconds(Double(count) / rate), clock: .continuous)
                count += 1
                let number = count
                group.addTask { await self.submit(number) }
            }
        }
    }

    private func submit(_ number: Int) async {
        let job = stage.job(number, pieces: 20, lane: number % 4 == 0 ? .batch : .interactive)
        // Open from here on: some watch a job before it is accepted.
        let deadline: Duration = .seconds(60)
        let outcome: HistoryEntry.Submission
        do {
            try await clients[number % clients.count].submit(job, deadline: deadline)
            outcome = .accepted
        } catch {
            stage.history.add(.note("\(job.id): \(error)"))
            if case .unknown = error { outcome = .unknown } else { outcome = .refused }
        }
        stage.note(job, outcome)
        guard outcome == .accepted else { return }
        state.withLock { $0.open.append(job.id) }
        // One watcher for each job from its start, which counts its end; the 200 come beside it.
        let view = await FaultStage.view(job.id, watcher: "first", through: clients[number % clients.count])
        stage.history.add(.viewed(view))
        state.withLock { state in
            state.open.removeAll { $0 == job.id }
            if view.end == .ended { state.ends.append(.now) }
        }
    }

    private func watchOneAfterAnother(_ number: Int) async {
        while !isEnding {
            let (id, pause): (JobID?, Int) = state.withLock { state in
                (state.open.randomElement(using: &state.generator), Int.random(in: 0...500, using: &state.generator))
            }
            // Joins at any moment of a job's life, also after its end.
            do { try await Task.sleep(for: .milliseconds(pause)) } catch { return }
            guard let id else { continue }
            let client = clients[number % clients.count]
            stage.history.add(.viewed(await FaultStage.view(id, watcher: "watcher \(number)", through: client)))
        }
    }
}
