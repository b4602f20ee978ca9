import Foundation

/// What our own programs never do to RabbitMQ: deleting exchanges, removing bindings, declaring queues another way.
///
/// Done with pika, a client of others.
package struct PikaClient: Sendable {
    let url: String

    package init(_ servers: FaultServers) { url = servers.amqpURL }

    /// Runs statements of Python with a channel named `channel`.
    @discardableResult
    package func run(_ statements: String...) async throws -> String {
        let program = """
            import pika, sys
            connection = pika.BlockingConnection(pika.URLParameters(sys.argv[1] + "/%2F"))
            channel = connection.channel()
            \(statements.joined(separator: "\n"))
            connection.close()
            """
        let result = try await GenTestSupport.run(
            TestEnvironment.value("GEN_TEST_PYTHON"), ["-c", program, url],
            environment: ProcessInfo.processInfo.environment, within: .seconds(30))
        guard result.status == 0 else { throw FaultError("pika: \(result.errors.suffix(600))") }
        return result.output
    }
}
