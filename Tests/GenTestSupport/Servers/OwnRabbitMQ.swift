import Foundation

/// A RabbitMQ of one test's own, for what would disturb the others: started and stopped by `ops/lib`.
package struct OwnRabbitMQ: Sendable {
    private let folder: String
    /// Where it listens, as `GEN_AMQP_URL` has it.
    package let url: String

    /// Runs the body with a server, and stops that whatever happens.
    package static func with<Result>(_ body: (OwnRabbitMQ) async throws -> Result) async throws -> Result {
        let folder = FileManager.default.temporaryDirectory.appending(path: "gen-rabbitmq-\(UUID().uuidString)").path
        let url = try await shell(
            """
            start_rabbitmq "$1" >&2
            # Should the test run die before its end, this stops the server.
            setsid bash -c '. "$0"; while [[ -d /proc/$2 ]]; do sleep 1; done; stop_rabbitmq "$1"; rm -rf "$1"' \\
              "$0" "$1" \(getpid()) </dev/null >/dev/null 2>&1 &
            amqp_url "$1"
            """, folder, within: .seconds(120))
        let server = OwnRabbitMQ(folder: folder, url: url)
        do {
            let result = try await body(server)
            try await server.stop()
            return result
        } catch {
            try await server.stop()
            throw error
        }
    }

    /// Runs `rabbitmqctl` on it.
    package func control(_ words: String...) async throws -> String {
        let quoted = words.map { "'\($0)'" }.joined(separator: " ")
        return try await Self.shell(
            """
            readarray -t variables < <(rabbitmq_environment "$1")
            env "${variables[@]}" /usr/lib/rabbitmq/bin/rabbitmqctl -q \(quoted)
            """, folder, within: .seconds(60))
    }

    private func stop() async throws {
        _ = try await Self.shell(#"stop_rabbitmq "$1"; rm -rf "$1""#, folder, within: .seconds(60))
    }

    private static func shell(
        _ script: String, _ folder: String, within limit: Duration
    ) async throws -> String {
        let project = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent().deletingLastPathComponent()
        let library = project.appending(path: "ops/lib/load.sh").path
        let environment = ProcessInfo.processInfo.environment
        let result = try await run(
            "/bin/bash", ["-c", ". \"$0\"\n" + script, library, folder], environment: environment, within: limit)
        guard result.status == 0 else {
            throw RunningProgram.TooLate(description: "RabbitMQ in \(folder): \(result.output) \(result.errors)")
        }
        return result.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
