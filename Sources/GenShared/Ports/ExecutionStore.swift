/// The store of jobs as a worker sees it.
///
/// Every write carries the owner's token: a stale owner is refused.
package protocol ExecutionStore: Sendable {
    /// Takes the lease for one attempt, or says why not. Makes the record where another client's message has none.
    /// - Throws: `StoreError`.
    func claim(_ request: ClaimRequest) async throws -> ClaimReply
    /// Adds events; the completion is called once, from any thread, and must not block.
    func append(_ batch: EventBatch, completion: @escaping @Sendable (Result<AppendReply, StoreError>) -> Void)
    /// Keeps the lease alive on a timer that no job's code can delay, until `dropLease`. The listener hears each
    /// renewal's answer, from any thread, and must not block.
    func keepLease(_ id: JobID, owner: String, listener: @escaping @Sendable (AppendReply) -> Void)
    /// Ends the renewals of that owner's lease; another's is left alone.
    func dropLease(_ id: JobID, owner: String)
    /// Gives the job back for another attempt.
    /// - Throws: `StoreError`.
    func release(_ release: JobRelease) async throws -> ReleaseReply
    /// Ends the job.
    /// - Throws: `StoreError`.
    func finish(_ ending: JobEnding) async throws -> FinishReply
    /// The job's record, or `nil` where there is none.
    /// - Throws: `StoreError`.
    func record(_ id: JobID) async throws -> JobRecord?
    /// Tells the services that wait for many jobs that this one has ended.
    /// - Throws: `StoreError`.
    func announce(_ id: JobID, state: JobState, kind: String, tenant: String) async throws
}

/// Who asks for the lease of a job, and for what.
package struct ClaimRequest: Sendable {
    package var job: Job
    /// The message, of which a record is made where there is none.
    package var body: [UInt8]
    /// Names the attempt's right to write.
    package var owner: String
    /// Members of the `started` event beside type and attempt.
    package var startedFields: String
    /// Whether a job may be given whose worker went away before; otherwise `suspect` is answered.
    package var mayBeSuspect = false
    /// The owner of an earlier attempt in the same process that ended while the store was away, so that its lease could
    /// not be given back; taking it back counts as nothing.
    package var formerOwner: String?

    package init(job: Job, body: [UInt8], owner: String, startedFields: String) {
        self.job = job
        self.body = body
        self.owner = owner
        self.startedFields = startedFields
    }
}

/// What `claim` answers.
package enum ClaimReply: Sendable, Equatable {
    case claimed(Claim)
    /// The job has ended; the message is done with.
    case terminal(JobState)
    /// Another owner holds the lease for that long at least.
    case busy(Duration)
    /// Its next attempt may begin after that long.
    case wait(Duration)
    /// A worker went away while it ran, and the caller cannot have such a job now; nothing was changed.
    case suspect
    /// The claim itself ended the job: cancelled, expired, exhausted or poison.
    case ended(JobState)
}

/// A lease on one attempt of a job.
package struct Claim: Sendable, Equatable {
    package var attempt: Int
    /// The last event of the log: this attempt's `started`.
    package var last: EventID
    package var failures: Int
    package var crashes: Int
    package var preempted: Int
    package var queuedMilliseconds: Int
    package var isCancelWanted: Bool

    package init(
        attempt: Int, last: EventID, failures: Int = 0, crashes: Int = 0, preempted: Int = 0,
        queuedMilliseconds: Int = 0, isCancelWanted: Bool = false
    ) {
        self.attempt = attempt
        self.last = last
        self.failures = failures
        self.crashes = crashes
        self.preempted = preempted
        self.queuedMilliseconds = queuedMilliseconds
        self.isCancelWanted = isCancelWanted
    }
}

/// Events of one attempt that follow each other.
package struct EventBatch: Sendable {
    package var id: JobID
    package var owner: String
    /// The event before the first.
    package var previous: EventID
    /// Id and JSON of each, in order.
    package var events: [(id: EventID, json: String)]

    package init(id: JobID, owner: String, previous: EventID, events: [(id: EventID, json: String)]) {
        self.id = id
        self.owner = owner
        self.previous = previous
        self.events = events
    }
}

/// What an append or a renewal answers.
package enum AppendReply: Sendable, Equatable {
    case ok(isCancelWanted: Bool)
    /// The store has lost events after that one: send again from there.
    case behind(EventID)
    /// The lease is another's: stop, and write nothing more.
    case fenced
}

/// How a running job is given back.
package struct JobRelease: Sendable {
    /// What the release counts as.
    package enum Counter: String, Sendable {
        case nothing = ""
        case failure = "failures"
        case preemption = "preempted"
    }

    package var id: JobID
    package var owner: String
    package var last: EventID
    package var counter: Counter
    package var delay: Duration
    package var content: JobEvent.Content
    package var usage: Usage?

    package init(
        id: JobID, owner: String, last: EventID, counter: Counter, delay: Duration, content: JobEvent.Content,
        usage: Usage? = nil
    ) {
        self.id = id
        self.owner = owner
        self.last = last
        self.counter = counter
        self.delay = delay
        self.content = content
        self.usage = usage
    }
}

/// What `release` answers.
package enum ReleaseReply: Sendable, Equatable {
    case released(failures: Int)
    /// A cancel came first.
    case ended(JobState)
    case behind(EventID)
    case fenced
}

/// How a running job ends.
package struct JobEnding: Sendable {
    package var id: JobID
    package var owner: String
    /// The event before the first of `events`, or the last one where there are none.
    package var previous: EventID
    /// Events that were not appended yet.
    package var events: [(id: EventID, json: String)]
    /// The terminal event; where it is `cancelled`, the store fills in who asked and how long ago.
    package var content: JobEvent.Content
    package var usage: Usage?

    package init(
        id: JobID, owner: String, previous: EventID, events: [(id: EventID, json: String)] = [],
        content: JobEvent.Content, usage: Usage? = nil
    ) {
        self.id = id
        self.owner = owner
        self.previous = previous
        self.events = events
        self.content = content
        self.usage = usage
    }
}

/// What `finish` answers.
package enum FinishReply: Sendable, Equatable {
    /// The state in which the job ended: `cancelled` where a cancel came first.
    case ended(JobState)
    case behind(EventID)
    case fenced
}
