import Foundation

/// Does to a queue what an operator does, through a client that is not ours.
package enum QueueTool {
    package enum Action: String {
        /// Makes a queue that takes no more.
        case full
        case purge
        case delete
    }

    package static func run(_ action: Action, _ queue: String) async throws {
        let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let result = try await GenTestSupport.run(
            TestEnvironment.value("GEN_TEST_PYTHON"),
            [
                tests.appending(path: "IntegrationTests/queue_tool.py").path,
                TestEnvironment.value("GEN_TEST_AMQP_URL"), action.rawValue, queue,
            ], environment: [:])
        guard result.status == 0 else { throw RunningProgram.TooLate(description: "queue_tool: \(result.errors)") }
    }

    /// What a command of Redis answers.
    package static func redis(_ words: String...) async throws -> String {
        let url = try TestEnvironment.value("GEN_TEST_REDIS_URL")
        let result = try await GenTestSupport.run("/usr/bin/redis-cli", ["-u", url] + words, environment: [:])
        return result.output.trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
