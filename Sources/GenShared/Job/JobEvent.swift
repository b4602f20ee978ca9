/// Something that happened to a job, as it stands in the log and on the channel.
public struct JobEvent: Sendable, Equatable {
    /// What happened.
    public enum Content: Sendable, Equatable {
        /// Accepted; never in the log.
        case queued
        /// An attempt began. `restarted`: the text of the attempt before no longer counts.
        case started(attempt: Int, worker: String, backend: String?, model: String?, restarted: Bool)
        /// The next piece of the answer.
        case chunk(String)
        /// The next piece of the model's reasoning.
        case reasoning(String)
        /// How far it is.
        case progress(Progress)
        /// The attempt ended without result; another follows.
        case retrying(reason: String, error: JobFailure?, delaySeconds: Double)
        /// Ended with a result.
        case completed(Completion)
        /// Ended with an error.
        case failed(JobFailure, partial: Usage?)
        /// Ended because somebody asked for it; the latency is from the request to the end, in milliseconds.
        case cancelled(by: String?, latencyMilliseconds: Int?, partial: Usage?)
        /// Ended because nobody ran it in time.
        case expired
        /// A type that this version does not know; it is passed on, not dropped.
        case unknown(type: String)
    }

    /// Its place in the log.
    public let id: EventID
    /// The event before it; a watcher that has not seen that one has missed something.
    public let previous: EventID
    /// What happened.
    public let content: Content
    /// The event as it was published: one JSON object on one line.
    public let json: String

    /// Whether the job has ended with this event.
    public var isTerminal: Bool { content.terminalState != nil }
}

extension JobEvent.Content {
    /// The state in which a job has ended with this; `nil` for anything but an end.
    public var terminalState: JobState? {
        switch self {
        case .completed: .completed
        case .failed: .failed
        case .cancelled: .cancelled
        case .expired: .expired
        default: nil
        }
    }
}

/// How far an attempt is.
public struct Progress: Sendable, Equatable {
    /// What the attempt is doing.
    public enum Phase: String, Sendable {
        /// The backend loads its model.
        case loading
        /// The backend has other work first.
        case queuedAtBackend = "queued_at_backend"
        /// The prompt is being read.
        case prompt
        /// The answer is being made.
        case generating
    }

    /// What the attempt is doing.
    public var phase: Phase
    /// 0 to 1, where the backend tells.
    public var fraction: Double?

    /// A progress.
    public init(phase: Phase, fraction: Double? = nil) {
        self.phase = phase
        self.fraction = fraction
    }
}

/// Tokens of a job.
public struct Usage: Sendable, Equatable {
    /// Tokens of the prompt.
    public var promptTokens: Int
    /// Tokens of the answer.
    public var completionTokens: Int
    /// Tokens of the prompt that the backend had in its cache.
    public var cachedTokens: Int
    /// Whether the figures were estimated here because the backend gave none.
    public var isEstimated: Bool

    /// Tokens.
    public init(promptTokens: Int, completionTokens: Int, cachedTokens: Int = 0, isEstimated: Bool = false) {
        self.promptTokens = promptTokens
        self.completionTokens = completionTokens
        self.cachedTokens = cachedTokens
        self.isEstimated = isEstimated
    }

    /// Prompt and answer together; saturates instead of overflowing.
    public var totalTokens: Int {
        let (sum, overflow) = promptTokens.addingReportingOverflow(completionTokens)
        return overflow ? .max : sum
    }
}

/// Times of a completed job.
public struct Stats: Sendable, Equatable {
    /// Milliseconds from submission to the start of the attempt.
    public var queueMilliseconds: Int
    /// Milliseconds from the start of the attempt to the first visible text.
    public var firstTokenMilliseconds: Int?
    /// Milliseconds from the start of the attempt to its end.
    public var totalMilliseconds: Int
    /// Tokens of the answer in a second of generation.
    public var tokensPerSecond: Double?

    /// Times.
    public init(
        queueMilliseconds: Int, firstTokenMilliseconds: Int?, totalMilliseconds: Int, tokensPerSecond: Double?
    ) {
        self.queueMilliseconds = queueMilliseconds
        self.firstTokenMilliseconds = firstTokenMilliseconds
        self.totalMilliseconds = totalMilliseconds
        self.tokensPerSecond = tokensPerSecond
    }
}

/// What a completed job ends with.
public struct Completion: Sendable, Equatable {
    /// The whole answer: the chunks of the last attempt joined.
    public var result: String
    /// Why the model stopped.
    public var finishReason: FinishReason
    /// Tokens.
    public var usage: Usage?
    /// Times.
    public var stats: Stats

    /// A completion.
    public init(result: String, finishReason: FinishReason, usage: Usage?, stats: Stats) {
        self.result = result
        self.finishReason = finishReason
        self.usage = usage
        self.stats = stats
    }
}
