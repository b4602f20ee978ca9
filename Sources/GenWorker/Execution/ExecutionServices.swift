import GenShared

/// What every execution of a pool shares.
struct ExecutionServices: Sendable {
    let store: any ExecutionStore
    let router: any MessageRouter
    /// In order of preference.
    let backends: [any GenerationBackend]
    let templates: [JobKind: PromptTemplate]
    let limits: JobLimits
    let timers: ExecutionTimers
    /// The name under which this worker shows in events.
    let workerID: String
    let pool: String
    /// The kinds that the pool serves.
    var kinds = Set(JobKind.allCases)
    var scheduler: any Scheduler = SystemScheduler()
    /// Shared by all pools of the worker.
    var suspects = SuspectGate()
    var unreturned = UnreturnedLeases()
}

/// Timers of one attempt beside its own timeout.
///
/// curl's low-speed limit is no use here: keep-alive comments defeat it.
struct ExecutionTimers: Sendable, Equatable {
    /// To the first event of the backend; a busy server reads long prompts first.
    var firstEvent: Duration = .seconds(120)
    /// Between two events.
    var gap: Duration = .seconds(60)
}

/// Where messages go that are not done with: a retry tier, or the dead queue.
protocol MessageRouter: Sendable {
    /// Publishes a copy of the message to the tier that waits about that long.
    /// - Returns: whether RabbitMQ has confirmed it; otherwise the delivery must not be acknowledged.
    func retry(_ delivery: JobDelivery, after delay: Duration) async -> Bool
    /// Publishes a copy of the message to the dead queue.
    /// - Returns: whether RabbitMQ has confirmed it.
    func bury(_ delivery: JobDelivery, reason: String, detail: String) async -> Bool
}

/// A message that was handed to a pool.
struct JobDelivery: Sendable {
    var pool: String
    var lane: Lane
    var body: [UInt8]
    var messageID: String?
    var type: String?
    var contentType: String?
    var contentEncoding: String?
    var traceParent: String?
}

/// What is to be done with a delivery once its execution has ended.
enum Disposition: Sendable, Equatable {
    /// The job's end, or its copy in a tier or the dead queue, is safe.
    case acknowledge
    /// Back to its queue at once.
    case requeue
    /// Back to its queue, and nothing more is taken for a while: the store or the broker is away.
    case requeueAndPause(String)
}
