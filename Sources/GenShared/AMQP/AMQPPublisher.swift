/// Publishes with confirms over one connection that is made on need and made anew after a loss.
package actor AMQPPublisher {
    private let url: AMQPURL
    private let name: String
    private var connection: AMQPConnection?
    private var opening: Task<AMQPConnection, any Error>?

    /// - Parameter name: shown by `rabbitmqctl list_connections`.
    package init(url: AMQPURL, name: String) {
        self.url = url
        self.name = name
    }

    /// Publishes a message, at most within that time.
    /// - Throws: `AMQPError` where no connection can be made; the message was not sent then.
    package func publish(_ message: AMQPMessage, within limit: Duration) async throws(AMQPError) -> PublishOutcome {
        let deadline = ContinuousClock.now + limit
        let first = try await attempt(message, until: deadline)
        // A connection that was lost while it lay idle shows it only now: nothing was sent, so it may be sent again.
        guard case .notSent = first, ContinuousClock.now < deadline else { return first }
        return try await attempt(message, until: deadline)
    }

    private func attempt(
        _ message: AMQPMessage, until deadline: ContinuousClock.Instant
    ) async throws(AMQPError) -> PublishOutcome {
        let current = try await usable(within: max(.milliseconds(100), deadline - .now))
        let outcome = await current.publish(message, within: max(.milliseconds(1), deadline - .now))
        switch outcome {
        case .notSent, .unknown: forget(current)
        case .confirmed, .returned, .nacked: break
        }
        return outcome
    }

    /// The connection, for calls beside publishing.
    /// - Parameter limit: how long making one may take, where that is less than the usual.
    /// - Throws: `AMQPError` where none can be made.
    package func usable(within limit: Duration = .seconds(20)) async throws(AMQPError) -> AMQPConnection {
        if let connection { return connection }
        // Callers that come meanwhile wait for the same attempt; a task of its own, since the first caller's
        // cancellation must not fail the others.
        let opening =
            self.opening
            ?? Task { [url, name] in
                let fresh = AMQPConnection(name: "amqp-publish") { _ in }
                var timeouts = AMQPTimeouts()
                // Two steps of that length: the set-up as a whole, and asking for confirms.
                timeouts.call = min(timeouts.call, limit / 2)
                timeouts.connect = min(timeouts.connect, timeouts.call)
                try await fresh.open(url: url, connectionName: name, confirms: true, timeouts: timeouts)
                return fresh
            }
        self.opening = opening
        do {
            let fresh = try await opening.value
            // The first of the callers that waited keeps it; a later one may find it lost and replaced already.
            if self.opening == opening { (connection, self.opening) = (fresh, nil) }
            return fresh
        } catch {
            if self.opening == opening { self.opening = nil }
            throw error as? AMQPError ?? AMQPError(.unreachable, "\(error)")
        }
    }

    /// Says good-bye.
    package func close() async {
        await connection?.close()
        connection = nil
    }

    /// Makes the next call open a connection of its own.
    func forget(_ lost: AMQPConnection) {
        if connection === lost { connection = nil }
    }
}
