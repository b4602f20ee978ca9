/// Why a job or an attempt failed.
public struct JobFailure: Error, Sendable, Equatable, CustomStringConvertible {
    /// The class of an error, the same for every backend.
    public enum Code: String, Sendable {
        /// The backend cannot be reached, is loading, or went away.
        case unavailable
        /// The backend refuses our credentials.
        case unauthorized
        /// The backend asks for fewer requests.
        case rateLimited = "rate_limited"
        /// The backend refuses the request as it is.
        case invalidInput = "invalid_input"
        /// The prompt does not fit the model's context.
        case contextExceeded = "context_exceeded"
        /// The provider refuses the content.
        case contentPolicy = "content_policy"
        /// The account has no credit.
        case credits
        /// The backend failed inside.
        case backendError = "backend_error"
        /// The backend's answer makes no sense, or ended without its end mark.
        case badReply = "bad_backend_reply"
        /// Nothing came for too long, or the attempt took too long.
        case timeout
        /// The answer grew beyond its limit.
        case outputTooLarge = "output_too_large"
        /// The result does not fit its schema.
        case invalidResult = "invalid_result"
        /// No backend of the pool serves this kind.
        case unsupported
        /// Every allowed attempt failed.
        case exhausted
        /// The job crashed its workers.
        case poison
        /// The job never ran: it could not be read, routed or kept.
        case rejected
        /// RabbitMQ gave the job's message up: it came back to its queue too often.
        case dropped
        /// A fault of ours.
        case `internal`
    }

    /// The class.
    public var code: Code
    /// What went wrong and what can be done, without secrets.
    public var message: String
    /// The backend that failed.
    public var backend: String?
    /// Whether another attempt may succeed.
    public var isRetryable: Bool
    /// Seconds after which the backend asks to come again, 1 to 600; an attempt that ends so does not count.
    public var retryAfterSeconds: Int?

    /// A failure.
    public init(_ code: Code, _ message: String, backend: String? = nil, isRetryable: Bool = false) {
        self.code = code
        self.message = message
        self.backend = backend
        self.isRetryable = isRetryable
    }

    /// One line for a person.
    public var description: String { message }
}
