/// Why Redis did not do what was asked.
package struct RedisError: Error, Sendable, CustomStringConvertible {
    package enum Code: Sendable, Equatable {
        /// No connection: nothing was sent.
        case unreachable
        /// The connection went away after sending: the command may or may not have run.
        case connectionLost
        /// Redis answered with an error; the value is its first word, such as `WRONGTYPE`.
        case refused(String)
        /// Redis answered something that our code does not expect.
        case unexpectedReply
        /// The connection was closed by us.
        case closed
    }

    package let code: Code
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    /// Whether the command certainly had no effect.
    package var isCertainlyUndone: Bool {
        switch code {
        case .unreachable, .refused, .closed: true
        case .connectionLost, .unexpectedReply: false
        }
    }

    /// Whether the same command may succeed a little later: the server is away, loading, full or a replica for now.
    package var isRetryable: Bool {
        switch code {
        case .unreachable, .connectionLost: true
        case .refused(let word):
            ["LOADING", "BUSY", "MISCONF", "OOM", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN", "NOREPLICAS"]
                .contains(word)
        case .unexpectedReply, .closed: false
        }
    }

    package var description: String { message }
}
