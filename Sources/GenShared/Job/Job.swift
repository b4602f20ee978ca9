/// One generation job: the content of the AMQP message, version 1 (`docs/protocol.md`).
public struct Job: Sendable, Equatable {
    /// The version of the message that this code writes and reads.
    public static let version = 1

    /// Its name.
    public var id: JobID
    /// What it asks for.
    public var kind: JobKind
    /// What it is about.
    public var input: JobInput
    /// How it is to be generated.
    public var options: GenerationOptions
    /// How urgent it is.
    public var lane: Lane
    /// The set of workers that serves it.
    public var pool: String
    /// When it was made; `nil` where the message does not say.
    public var createdAt: Timestamp?
    /// When it is no longer wanted unless it runs by then.
    public var expiresAt: Timestamp?
    /// Seconds that one attempt may take.
    public var timeoutSeconds: Int
    /// A label for whoever owns the job.
    public var tenant: String
    /// Anything that the submitter wants to find again; kept, never read.
    public var metadata: JSONObject

    /// A job with the defaults of its kind.
    public init(
        id: JobID, kind: JobKind, input: JobInput, options: GenerationOptions = GenerationOptions(),
        lane: Lane = .interactive, pool: String? = nil, createdAt: Timestamp? = nil, expiresAt: Timestamp? = nil,
        timeoutSeconds: Int = JobLimits().defaultTimeoutSeconds, tenant: String = "default",
        metadata: JSONObject = JSONObject()
    ) {
        self.id = id
        self.kind = kind
        self.input = input
        self.options = options
        self.lane = lane
        self.pool = pool ?? kind.defaultPool
        self.createdAt = createdAt
        self.expiresAt = expiresAt
        self.timeoutSeconds = timeoutSeconds
        self.tenant = tenant
        self.metadata = metadata
    }

    /// Whether text can be the name of a pool: it becomes part of a queue's name.
    public static func isPoolName(_ text: String) -> Bool {
        JobID(text) != nil && text.utf8.count <= 32
    }
}
