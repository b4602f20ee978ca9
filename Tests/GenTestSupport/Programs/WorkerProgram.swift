import Foundation

/// A real worker of a test's own: with its own pool, so that tests do not take each other's jobs.
package struct WorkerProgram: Sendable {
    package let program: RunningProgram
    package let pool: String

    /// Starts a worker and waits until it consumes.
    /// - Parameters:
    ///   - backend: the inside of a backend's entry in the configuration.
    ///   - more: further members of the configuration.
    package static func start(
        pool: String, slots: Int = 4, backend: String = #"type: "echo""#, poolSettings: String = "", more: String = "",
        environment: [String: String] = [:], waits: Bool = true
    ) async throws -> WorkerProgram {
        let configuration = """
            {
              backends: { main: { \(backend) } },
              pools: { \(pool): { slots: \(slots), backends: ["main"], \(poolSettings) } },
              \(more)
            }
            """
        let file = FileManager.default.temporaryDirectory.appending(path: "gen-\(UUID().uuidString).json5")
        try Data(configuration.utf8).write(to: file)
        var variables = try TestEnvironment.programEnvironment()
        variables.merge(environment) { $1 }
        let program = try RunningProgram(
            TestEnvironment.program("genworker"), ["run", "--config", file.path], environment: variables)
        if waits {
            // Read by now; one that is not waited for may still have to.
            defer { try? FileManager.default.removeItem(at: file) }  // Temporary: no harm if it stays.
            try await program.waitFor("\"event\":\"ready\"", within: .seconds(120))
        }
        return WorkerProgram(program: program, pool: pool)
    }

    /// Asks it to drain and waits for its end.
    @discardableResult
    package func stop(within limit: Duration = .seconds(40)) async throws -> Int32 {
        program.signal(SIGTERM)
        return try await program.end(within: limit)
    }
}

/// Runs the body with a worker, and stops it whatever happens.
package func withWorker<Result>(
    slots: Int = 4, backend: String = #"type: "echo""#, poolSettings: String = "", more: String = "",
    _ body: (WorkerProgram) async throws -> Result
) async throws -> Result {
    let worker = try await WorkerProgram.start(
        pool: TestEnvironment.uniqueName("t"), slots: slots, backend: backend, poolSettings: poolSettings, more: more)
    do {
        let result = try await body(worker)
        try await worker.stop()
        return result
    } catch {
        worker.program.signal(SIGKILL)
        throw error
    }
}
