/// Why RabbitMQ did not do what was asked.
package struct AMQPError: Error, Sendable, CustomStringConvertible {
    package enum Code: Sendable, Equatable {
        /// No connection could be made.
        case unreachable
        /// User, password or virtual host were refused.
        case unauthorized
        /// The connection went away: what was under way may or may not have happened.
        case connectionLost
        /// RabbitMQ closed the channel with this reply code, such as 404 or 406.
        case refused(Int)
        /// The connection was closed by us.
        case closed
        /// A value does not fit the protocol.
        case invalid
    }

    package let code: Code
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Whether RabbitMQ understood the call and said no.
    package var isRefused: Bool { if case .refused = code { true } else { false } }

    package var description: String { message }
}
