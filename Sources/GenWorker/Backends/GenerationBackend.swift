import GenShared

/// Something that generates: a program of ours on this machine, or an API elsewhere.
protocol GenerationBackend: Sendable {
    /// Its name in the configuration.
    var name: String { get }
    /// The kinds of jobs that it can serve.
    var kinds: Set<JobKind> { get }
    /// The model that it answers with, once known.
    var model: String? { get }
    /// Generations that it takes at once; more are never sent to it.
    var capacity: Int { get }

    /// Makes it ready: starts its program, waits for its model.
    /// - Parameter progress: hears how far it is; called at least once a second while it loads.
    /// - Throws: `JobFailure` that says in one line why it cannot serve; `CancellationError`.
    func start(progress: @escaping @Sendable (Progress) -> Void) async throws

    /// Begins a generation. Nothing is awaited here.
    func generate(_ request: GenerationRequest) -> any GenerationStream

    /// Proves with a request of one token that it serves.
    /// - Returns: what it says of itself.
    /// - Throws: `JobFailure`; `CancellationError`.
    func probe() async throws -> String

    /// Ends it, and any program that it started.
    func stop() async
}

/// What a backend is asked.
struct GenerationRequest: Sendable {
    var kind: JobKind
    var messages: [ConversationMessage]
    var options: GenerationOptions
    var schema: JSONValue?
}

/// What a backend answers, piece by piece.
enum GenerationEvent: Sendable, Equatable {
    case text(String)
    case reasoning(String)
    case progress(Progress)
    /// The end mark of the protocol was seen. Tokens a second are those of generation alone.
    case finished(FinishReason, Usage?, tokensPerSecond: Double?)
}

/// One generation under way, read by one task.
///
/// Pull-based: what is not read is not sent for long.
protocol GenerationStream: Sendable {
    /// The next event; `nil` after `finished`.
    /// - Throws: `JobFailure`; `CancellationError` when the task is cancelled, which ends the generation.
    func next() async throws -> GenerationEvent?

    /// What is known of the tokens so far, for a generation that did not end by itself.
    var partialUsage: Usage? { get }

    /// Ends the generation if it still runs, and returns when the backend has freed its slot, or after a bound.
    /// Call it from a task that is not cancelled.
    func settle() async
}
