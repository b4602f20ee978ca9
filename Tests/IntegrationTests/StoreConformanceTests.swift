import GenShared
import GenTestSupport
import Testing

/// The Lua scripts and the simulation's store, side by side: the same calls, answers, records and logs.
///
/// What the simulation proves is worth nothing unless its store is the real one.
@Suite("Store conformance", .timeLimit(.minutes(3)))
struct StoreConformanceTests {
    private static let seeds: Range<UInt64> = 0..<80
    private static let callsPerSeed = 50

    @Test("whatever is called, in whatever order, the scripts and their model in memory agree")
    func agreement() async throws {
        ProcessSetup.run()
        let connection = RedisConnection(
            url: try TestEnvironment.redisURL(), name: "conformance", scripts: RedisScript.all)
        var kinds: [String: Int] = [:]
        for seed in Self.seeds {
            var pair = StorePair(seed: seed, connection: connection)
            for number in 0..<Self.callsPerSeed {
                let call = pair.nextCall()
                let (model, redis) = try await pair.perform(call)
                kinds[String(redis.prefix { $0 != "(" }), default: 0] += 1
                try #require(model == redis, "seed \(seed), call \(number): \(call)")
                let (modelState, redisState) = try await pair.states()
                try #require(modelState == redisState, "seed \(seed), after call \(number): \(call)")
            }
        }
        await connection.close()
        // A sequence that never meets an answer proves nothing of it.
        for kind in ["claimed", "busy", "wait", "terminal", "ended", "suspect", "ok", "behind", "fenced", "released"] {
            #expect(kinds[kind, default: 0] > 0, "no call was answered \(kind): \(kinds)")
        }
    }
}
