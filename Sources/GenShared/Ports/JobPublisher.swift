/// Hands the messages of jobs to the broker, and tells what became of each.
package protocol JobPublisher: Sendable {
    /// Publishes a job's message and waits until the broker has answered for it, about that long at most.
    ///
    /// Cancellation does not shorten the wait: what was sent may be taken in any case.
    /// - Throws: `PublisherError` where the broker could not be reached; nothing was sent then.
    func publish(_ message: JobMessage, within limit: Duration) async throws(PublisherError) -> PublishOutcome
}

/// The message of a job: its body, and where it goes.
package struct JobMessage: Sendable, Equatable {
    package var id: JobID
    package var kind: String
    package var pool: String
    package var lane: Lane
    package var body: [UInt8]

    package init(id: JobID, kind: String, pool: String, lane: Lane, body: [UInt8]) {
        self.id = id
        self.kind = kind
        self.pool = pool
        self.lane = lane
        self.body = body
    }
}

/// What became of a published message.
package enum PublishOutcome: Sendable, Equatable {
    /// Every target queue has it, on a majority of disks.
    case confirmed
    /// No queue takes this routing key.
    case returned(String)
    /// The broker refused it: the queue is full.
    case nacked
    /// Nothing was sent.
    case notSent(String)
    /// Sent, but no confirm came: it may or may not be there.
    case unknown(String)
}

/// Why nothing could be sent to the broker.
package struct PublisherError: Error, Sendable, CustomStringConvertible {
    /// What went wrong and where.
    package let message: String
    /// Whether trying again is of no use, as with a wrong password.
    package let isFinal: Bool

    package init(_ message: String, isFinal: Bool) {
        self.message = message
        self.isFinal = isFinal
    }

    package var description: String { message }
}
