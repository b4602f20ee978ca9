import GenShared
import Synchronization

/// A backend that says what it is told: deterministic, for trials, tests and benchmarks.
///
/// A job's text is sent back in pieces. Its options and its configuration choose the size of a piece, the pause
/// between two, and how it fails.
final class EchoBackend: GenerationBackend {
    /// How a generation misbehaves.
    enum Failure: String, CaseIterable {
        /// Fails before the first text, in a way that may heal.
        case before
        /// Fails in the middle, in a way that may heal.
        case middle
        /// Fails in a way that will not heal.
        case permanent
        /// Says nothing, for ever.
        case silent
    }

    struct Settings: Sendable {
        /// Unicode scalars of a piece.
        var chunkSize = 4
        var delay: Duration = .zero
        /// How often the text is said.
        var times = 1
        var failure: Failure?
        var capacity = 64
    }

    let name: String
    let kinds: Set<JobKind> = [.slogan, .rewrite, .reply]
    let model: String? = "echo"
    let capacity: Int
    private let settings: Settings

    init(name: String, settings: Settings) {
        self.name = name
        self.settings = settings
        capacity = settings.capacity
    }

    func start(progress: @escaping @Sendable (Progress) -> Void) async throws {}
    func probe() async throws -> String { "echoes" }
    func stop() async {}

    func generate(_ request: GenerationRequest) -> any GenerationStream {
        let text = request.messages.last?.content ?? ""
        let limit = request.options.maxTokens ?? .max
        return EchoStream(name: name, text: text, settings: settings, tokenLimit: limit)
    }
}

/// One echo.
private final class EchoStream: GenerationStream {
    private struct State {
        var scalars: [Unicode.Scalar]
        var position = 0
        var pieces = 0
        var isFinished = false
    }

    private let name: String
    private let settings: EchoBackend.Settings
    private let tokenLimit: Int
    private let promptTokens: Int
    private let state: Mutex<State>

    init(name: String, text: String, settings: EchoBackend.Settings, tokenLimit: Int) {
        self.name = name
        self.settings = settings
        self.tokenLimit = tokenLimit
        let once = Array(text.unicodeScalars)
        promptTokens = once.count / 4 + 1
        state = Mutex(State(scalars: Array(repeatElement(once, count: settings.times).joined())))
    }

    var partialUsage: Usage? {
        Usage(promptTokens: promptTokens, completionTokens: state.withLock { $0.pieces }, isEstimated: true)
    }

    func next() async throws -> GenerationEvent? {
        try await misbehave()
        if settings.delay > .zero { try await Task.sleep(for: settings.delay) }
        try Task.checkCancellation()
        return state.withLock { state in
            if state.isFinished { return nil }
            let rest = state.scalars[state.position...].prefix(settings.chunkSize)
            if rest.isEmpty || state.pieces >= tokenLimit {
                state.isFinished = true
                let usage = Usage(promptTokens: promptTokens, completionTokens: state.pieces)
                return .finished(rest.isEmpty ? .stop : .length, usage, tokensPerSecond: nil)
            }
            state.position += rest.count
            state.pieces += 1
            var text = String.UnicodeScalarView()
            text.append(contentsOf: rest)
            return .text(String(text))
        }
    }

    func settle() async {}

    private func misbehave() async throws {
        let (position, count) = state.withLock { ($0.position, $0.scalars.count) }
        switch settings.failure {
        case .before: throw JobFailure(.backendError, "\(name) fails as configured", backend: name, isRetryable: true)
        case .middle where position * 2 >= count:
            throw JobFailure(.backendError, "\(name) fails as configured", backend: name, isRetryable: true)
        case .permanent: throw JobFailure(.invalidInput, "\(name) refuses as configured", backend: name)
        case .silent: try await Task.sleep(for: .seconds(86_400))
        default: break
        }
    }
}
