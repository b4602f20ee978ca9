import Foundation
import GenShared
import GenTestSupport
import Testing

extension FaultTests {
    /// The long run: `./ops/faults --nemesis --minutes 10 --seed N`.
    @Suite("Nemesis", .timeLimit(.minutes(240)))
    struct NemesisTests {
        /// What 2 cores carry beside the servers and the checks.
        private static let rate = 8.0
        private static let watchers = 200

        @Test("F64 random faults for minutes: nothing lost, nothing ended twice, no gap, no double, and quick healing")
        func f64Nemesis() async throws {
            let environment = ProcessInfo.processInfo.environment
            let seed = environment["GEN_NEMESIS_SEED"].flatMap { UInt64($0) } ?? UInt64.random(in: 0...999_999)
            let minutes = environment["GEN_NEMESIS_MINUTES"].flatMap { Double($0) } ?? 1
            say(
                "nemesis: seed \(seed), \(minutes) minutes, 4 workers, \(Self.watchers) watchers, \(Self.rate) jobs/s")
            try await FaultStage.play("F64") { stage in
                say("nemesis: the history is written to \(stage.history.path)")
                let crew = WorkerCrew(stage: stage, backend: #"type: "echo", delay: "100ms""#)
                try await crew.start(4)
                let load = try NemesisLoad(stage: stage, rate: Self.rate, watchers: Self.watchers, seed: seed)
                async let running: Void = load.run()
                let slowest: Duration
                do {
                    slowest = try await harm(stage, crew, load, seed, .seconds(minutes * 60))
                    load.end()
                } catch {
                    load.end()
                    throw error
                }
                await running
                // Workers that drain and interactive jobs that push batch jobs out give attempts back.
                var rules = HistoryChecker.Rules.attempts(4)
                rules.forgivesReleases = true
                let summary = try await stage.settle(within: .seconds(120), rules: rules)
                say("nemesis: seed \(seed): \(summary)")
                say("nemesis: 0 lost, 0 with two ends, 0 views with a gap or a double; slowest healing \(slowest)")
                // Thrown, so that history and logs are kept.
                guard slowest <= .seconds(10) else {
                    throw FaultError("half of the usual throughput was back only \(slowest) after a healing")
                }
                guard summary.accepted > Int(minutes * 60 * Self.rate / 3) else {
                    throw FaultError("only \(summary.accepted) jobs were accepted: too few to prove anything")
                }
            }
        }

        /// Fault after fault, each healed before the next one.
        /// - Returns: the longest time from a healing until work went on at half of its usual rate.
        private func harm(
            _ stage: FaultStage, _ crew: WorkerCrew, _ load: NemesisLoad, _ seed: UInt64, _ length: Duration
        ) async throws -> Duration {
            var nemesis = Nemesis(stage: stage, crew: crew, seed: seed)
            let began = ContinuousClock.now
            // The usual rate is measured first: 10 s after the first jobs have ended.
            try await poll(within: .seconds(60)) { load.ends(since: began) > 10 }
            let measured = ContinuousClock.now
            try await Task.sleep(for: .seconds(10))
            let usual = Double(load.ends(since: measured)) / 10
            say("nemesis: usual throughput \(usual) jobs/s")
            var slowest: Duration = .zero
            while ContinuousClock.now - began < length {
                let (fault, seconds, victim) = nemesis.next()
                let at = (ContinuousClock.now - began) / .seconds(1)
                stage.note("\(fault.rawValue), \(seconds) s, worker \(victim)")
                try await nemesis.perform(fault, seconds: seconds, victim: victim)
                let healed = ContinuousClock.now
                stage.note("healed")
                let took = try await healing(load, since: healed, usual: usual)
                slowest = max(slowest, took)
                say(
                    "nemesis: \(Int(at)) s: \(fault.rawValue), \(seconds) s, worker \(victim): "
                        + "throughput back after \(Int(took / .milliseconds(1))) ms")
                // Some calm, so that each fault meets a working cluster.
                try await Task.sleep(for: .seconds(3))
            }
            return slowest
        }

        /// Waits for two seconds in which at least half of the usual number of jobs ended.
        /// - Returns: from the healing to the beginning of those two seconds.
        private func healing(
            _ load: NemesisLoad, since healed: ContinuousClock.Instant, usual: Double
        ) async throws -> Duration {
            let window: Duration = .seconds(2)
            var start = healed
            while ContinuousClock.now - healed < .seconds(120) {
                try await Task.sleep(for: .milliseconds(100))
                let from = max(healed, .now - window)
                if ContinuousClock.now - from >= window - .milliseconds(150), Double(load.ends(since: from)) >= usual {
                    start = from
                    return start - healed
                }
            }
            throw FaultError("throughput is not back 120 s after the healing")
        }
    }
}

/// Tells how the run goes: to the file that `ops/faults` shows while it grows, since `swift test` holds its output back
/// for minutes; by hand, to standard output.
private func say(_ line: String) {
    let bytes = Data("\(line)\n".utf8)
    guard let path = ProcessInfo.processInfo.environment["GEN_NEMESIS_LOG"],
        let file = FileHandle(forWritingAtPath: path)
    else { return FileHandle.standardOutput.write(bytes) }
    defer { try? file.close() }  // Nothing is lost with it: the line is written.
    file.seekToEndOfFile()
    file.write(bytes)
}
