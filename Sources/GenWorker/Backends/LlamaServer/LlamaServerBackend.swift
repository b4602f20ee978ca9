import GenShared
import Synchronization

/// llama.cpp's server: a child of ours, or one that somebody else runs.
final class LlamaServerBackend: GenerationBackend {
    enum Place: Sendable {
        case supervised(LlamaServerProcess.Settings)
        case address(url: String, key: Secret?, slots: Int, startTimeout: Duration)
    }

    private struct State {
        var model: String?
        var open = 0
    }

    let name: String
    let kinds: Set<JobKind> = [.slogan, .rewrite, .reply]
    let capacity: Int
    let client: LlamaServerClient
    private let process: LlamaServerProcess?
    private let startTimeout: Duration
    private let state = Mutex(State())

    init(name: String, place: Place, http: HTTPClient) throws(JobFailure) {
        self.name = name
        switch place {
        case .supervised(let settings):
            guard let port = FreePort.find() else {
                throw JobFailure(.unavailable, "\(name): no free port on 127.0.0.1", backend: name)
            }
            // Other users of the machine can reach the port, so a key of this start's own guards it.
            let key = "\(JobID(atMilliseconds: 0))\(JobID(atMilliseconds: 0))"
            client = LlamaServerClient(name: name, baseURL: "http://127.0.0.1:\(port)", key: Secret(key), http: http)
            process = LlamaServerProcess(client: client, settings: settings, port: port, key: key)
            capacity = settings.parallel
            startTimeout = settings.startTimeout
        case .address(let url, let key, let slots, let limit):
            client = LlamaServerClient(name: name, baseURL: url, key: key, http: http)
            process = nil
            capacity = slots
            startTimeout = limit
        }
    }

    var model: String? { state.withLock { $0.model } }

    /// Whether its program is being started.
    var isStarting: Bool { process?.isStarting ?? false }

    func start(progress: @escaping @Sendable (Progress) -> Void) async throws {
        if let process { try await process.start(progress: progress) } else { try await waitForServer(progress) }
        let properties = try await client.properties()
        guard properties.slots >= capacity else {
            throw JobFailure(
                .unavailable,
                "\(name) has \(properties.slots) slots, \(capacity) are configured: set `parallel` to at most that",
                backend: name)
        }
        state.withLock { $0.model = properties.model }
    }

    /// A server of somebody else's may be loading its model, or may be started at the same moment as we are.
    private func waitForServer(_ progress: @Sendable (Progress) -> Void) async throws {
        let deadline = ContinuousClock.now + startTimeout
        while true {
            switch try await client.health() {
            case .ready: return
            case .loading: progress(Progress(phase: .loading))
            case .away(let reason) where ContinuousClock.now >= deadline:
                throw JobFailure(
                    .unavailable, "\(name) at \(client.baseURL) does not answer: \(reason)", backend: name,
                    isRetryable: true)
            case .away: break
            }
            try await Task.sleep(for: .milliseconds(250))
        }
    }

    func generate(_ request: GenerationRequest) -> any GenerationStream {
        LlamaServerStream(backend: self, request: request)
    }

    func probe() async throws -> String {
        let properties = try await client.properties()
        var options = GenerationOptions()
        options.maxTokens = 1
        let stream = generate(
            GenerationRequest(
                kind: .slogan, messages: [ConversationMessage(role: .user, content: "Hi")], options: options))
        while try await stream.next() != nil {}
        return "\(properties.model ?? "model"), \(properties.slots) slots of \(properties.context) tokens"
    }

    func stop() async { await process?.stop() }

    func streamOpened() { state.withLock { $0.open += 1 } }
    func streamClosed() { state.withLock { $0.open -= 1 } }

    /// Waits until the server works on no more requests than we have open.
    ///
    /// At most 10 s, after which the slot is given back regardless: the request's token limit ends it in any case. A
    /// server at an address may serve others, too, whose work tells nothing of ours: there only the connection counts.
    func awaitFreeSlot() async {
        guard process != nil else { return }
        let deadline = ContinuousClock.now + .seconds(10)
        while ContinuousClock.now < deadline {
            let open = state.withLock { $0.open }
            do {
                // A server that does not tell, or is gone, has nothing to wait for.
                guard let busy = try await client.busySlots(), busy > open else { return }
                try await Task.sleep(for: .milliseconds(10))
            } catch { return }
        }
        Log.error("slot_stays_busy", ["backend": .string(name)])
    }
}
