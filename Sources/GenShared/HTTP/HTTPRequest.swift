/// A request to a backend.
package struct HTTPRequest: Sendable {
    package enum Method: String, Sendable {
        case get = "GET"
        case post = "POST"
    }

    package var method: Method
    package var url: String
    /// Names with their values; a value with a line break is refused, since curl passes it on as it stands.
    package var headers: [(name: String, value: String)] = []
    package var body: [UInt8]?
    package var connectTimeout: Duration = .seconds(5)
    /// From the start to the last byte; `nil` for streams, which have timers of their own.
    package var totalTimeout: Duration?

    package init(_ method: Method, _ url: String, body: [UInt8]? = nil) {
        self.method = method
        self.url = url
        self.body = body
    }
}

/// Why a request got no answer, or only a part of one.
package struct HTTPError: Error, Sendable, CustomStringConvertible {
    package enum Code: Sendable, Equatable {
        /// No connection was made: the request had no effect.
        case unreachable
        /// The connection broke or the answer ended early.
        case connectionLost
        /// It took too long.
        case timeout
        /// The request itself is not valid.
        case invalid
        /// The client was closed.
        case closed
    }

    package let code: Code
    package let message: String

    package init(_ code: Code, _ message: String) {
        self.code = code
        self.message = message
    }

    package var description: String { message }
}
