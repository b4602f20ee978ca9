/// The bounds of one job, enforced where it is submitted and again where it is run.
public struct JobLimits: Sendable, Equatable {
    /// Bytes of the message's body.
    public var bodyBytes = 1 << 20
    /// Bytes of the text, and of all earlier turns together.
    public var promptBytes = 64 << 10
    /// Bytes of what a job may produce.
    public var outputBytes = 1 << 20
    /// Tokens of what a job may produce.
    public var maxTokens = 8192
    /// Earlier turns of a conversation.
    public var messages = 256
    /// Seconds that an attempt may run when the job names none.
    public var defaultTimeoutSeconds = 600
    /// Seconds that an attempt may run at most: RabbitMQ takes a delivery back after 30 minutes.
    public var maxTimeoutSeconds = 1200
    /// Pictures of one job.
    public var imageCount = 10
    /// Side of a picture, in pixels.
    public var imageSide = 64...4096

    /// The defaults.
    public init() {}
}
