import GenShared
import Glibc
import Synchronization

/// Starts a llama-server, waits until its model is loaded, starts it again when it goes away.
final class LlamaServerProcess: Sendable {
    struct Settings: Sendable {
        var command: String
        var model: String
        /// Slots.
        var parallel = 4
        /// Tokens of context of each slot.
        var context = 2048
        var threads: Int?
        /// Passed on as they are.
        var arguments: [String] = []
        /// How long loading may take.
        var startTimeout: Duration = .seconds(600)
    }

    private enum Phase {
        case starting
        case ready
        case stopping
    }

    private struct State {
        var phase = Phase.starting
        var child: ChildProcess?
        var keeper: Task<Void, Never>?
    }

    private let client: LlamaServerClient
    private let settings: Settings
    private let port: Int
    private let key: String
    private let state = Mutex(State())

    init(client: LlamaServerClient, settings: Settings, port: Int, key: String) {
        self.client = client
        self.settings = settings
        self.port = port
        self.key = key
    }

    /// Whether it is being started, for the first time or again.
    var isStarting: Bool {
        if case .starting = state.withLock({ $0.phase }) { true } else { false }
    }

    /// Starts it and waits for its model.
    /// - Throws: `JobFailure`; `CancellationError`.
    func start(progress: @escaping @Sendable (Progress) -> Void) async throws {
        try ModelFile.check(settings.model, backend: client.name)
        let child = try await launch(progress: progress)
        let keeper = Task { await keep(child) }  // Lives until `stop`: it outlasts whoever started the server.
        state.withLock { state in
            state.phase = .ready
            state.keeper = keeper
        }
    }

    private func launch(progress: @Sendable (Progress) -> Void) async throws -> ChildProcess {
        let child = ChildProcess(name: "llama")
        state.withLock { $0.child = child }
        do { try await child.start(arguments, environment: ["LLAMA_API_KEY": key]) } catch {
            throw failure("\(error); install llama.cpp, or set `command`")
        }
        do {
            try await waitUntilReady(child, progress)
            return child
        } catch {
            // Cancelled, or too late: it must not run on unwatched.
            await child.signal(SIGKILL)
            throw error
        }
    }

    private func waitUntilReady(_ child: ChildProcess, _ progress: @Sendable (Progress) -> Void) async throws {
        let deadline = ContinuousClock.now + settings.startTimeout
        while true {
            progress(Progress(phase: .loading))
            if let ending = await child.currentEnding { throw await exited(child, ending) }
            if try await client.health() == .ready { return }
            guard ContinuousClock.now < deadline else {
                throw failure("it did not load its model within \(settings.startTimeout)")
            }
            try await Task.sleep(for: .milliseconds(100))
        }
    }

    private var arguments: [String] {
        var words = [
            settings.command, "-m", settings.model, "--host", "127.0.0.1", "--port", "\(port)", "-np",
            "\(settings.parallel)", "-c", "\(settings.context * settings.parallel)", "--no-kv-unified",
        ]
        if let threads = settings.threads { words += ["-t", "\(threads)"] }
        return words + settings.arguments
    }

    /// Starts it again whenever it ends, with growing pauses.
    private func keep(_ first: ChildProcess) async {
        var child = first
        var backoff = Backoff(first: .milliseconds(500), limit: .seconds(30))
        while !Task.isCancelled {
            let ending = await child.end()
            let isStopping = state.withLock { state in
                if case .stopping = state.phase { return true }
                state.phase = .starting
                return false
            }
            if isStopping { return }
            let words = await exited(child, ending).message
            Log.error("backend_exited", ["backend": .string(client.name), "reason": .string(words)])
            guard let next = await startAgain(&backoff) else { return }
            child = next
        }
    }

    /// Tries until it runs again.
    /// - Returns: `nil` when the worker stops.
    private func startAgain(_ backoff: inout Backoff) async -> ChildProcess? {
        while true {
            do {
                try await Task.sleep(for: backoff.next())
                let child = try await launch(progress: { _ in })
                state.withLock { if case .starting = $0.phase { $0.phase = .ready } }
                Log.info("backend_restarted", ["backend": .string(client.name)])
                backoff.reset()
                return child
            } catch is CancellationError { return nil } catch {
                Log.error("backend_restart_failed", ["backend": .string(client.name), "reason": .string("\(error)")])
            }
        }
    }

    /// In the order that llama-server needs: its clients are gone by now; SIGTERM, again after 5 s, then SIGKILL.
    func stop() async {
        let (child, keeper) = state.withLock { state in
            state.phase = .stopping
            return (state.child, state.keeper)
        }
        keeper?.cancel()
        guard let child else { return }
        for signal in [SIGTERM, SIGTERM, SIGKILL] {
            await child.signal(signal)
            if await hasEnded(child, within: .seconds(5)) { return }
        }
    }

    private func hasEnded(_ child: ChildProcess, within limit: Duration) async -> Bool {
        let deadline = ContinuousClock.now + limit
        while await child.currentEnding == nil {
            guard ContinuousClock.now < deadline else { return false }
            // The worker stops: its task may be cancelled, and then this pause fails; the bound holds anyway.
            try? await Task.sleep(for: .milliseconds(20))
        }
        return true
    }

    private func exited(_ child: ChildProcess, _ ending: ChildProcess.Ending) async -> JobFailure {
        let lines = await child.lastLines
        let telling = lines.last { line in
            ["error", "failed", "unable", "cannot", "exception"].contains { line.lowercased().contains($0) }
        }
        let words = (telling ?? lines.last).map { "; it said: \($0.prefix(300))" } ?? ""
        return failure("\(settings.command): \(ending)\(words)")
    }

    private func failure(_ message: String) -> JobFailure {
        JobFailure(.unavailable, "\(client.name): \(message)", backend: client.name, isRetryable: true)
    }
}
