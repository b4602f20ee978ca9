import GenShared
import Synchronization

/// One streamed chat completion.
final class LlamaServerStream: GenerationStream {
    private enum Phase {
        /// The request is still to be sent; where the model loads, that is waited for first.
        case waiting
        case open(HTTPExchange)
        case ended
    }

    private struct State {
        var phase = Phase.waiting
        var parser = ServerSentEventParser()
        var decoder: ChatStreamDecoder
        var ready: [GenerationEvent] = []
        var position = 0
        /// Whether the backend counts this stream among those that hold a slot.
        var isCounted = false
    }

    private let backend: LlamaServerBackend
    private let request: GenerationRequest
    /// Read by one task; the lock only lets `settle` and `partialUsage` in from others.
    private let state: Mutex<State>

    init(backend: LlamaServerBackend, request: GenerationRequest) {
        self.backend = backend
        self.request = request
        state = Mutex(State(decoder: ChatStreamDecoder(backend: backend.name)))
    }

    var partialUsage: Usage? {
        let decoder = state.withLock { $0.decoder }
        if let usage = decoder.usage { return usage }
        // The server sends a piece a token; only the end of the stream would carry the exact figure.
        return Usage(promptTokens: decoder.promptTokens ?? 0, completionTokens: decoder.pieces, isEstimated: true)
    }

    func next() async throws -> GenerationEvent? {
        while true {
            let ready: GenerationEvent? = state.withLock { state in
                guard state.position < state.ready.count else {
                    state.ready.removeAll(keepingCapacity: true)
                    state.position = 0
                    return nil
                }
                defer { state.position += 1 }
                return state.ready[state.position]
            }
            if let ready { return ready }
            switch state.withLock({ $0.phase }) {
            case .waiting: try await open()
            case .open(let exchange): try await read(exchange)
            case .ended: return nil
            }
        }
    }

    private func open() async throws {
        let body = ChatRequest.body(request, model: nil)
        let exchange = backend.client.http.start(backend.client.request(.post, "/v1/chat/completions", body: body))
        // From here on the server may give it a slot: the status comes only when the slot begins its work.
        backend.streamOpened()
        state.withLock { state in
            state.phase = .open(exchange)
            state.isCounted = true
        }
        let status: Int
        do { status = try await exchange.status() } catch let error as HTTPError {
            // A supervised server that does not listen is being started again.
            close()
            if error.code == .unreachable, backend.isStarting { return try await waitForModel() }
            throw failure(error)
        }
        guard status == 200 else {
            let body = try await rest(of: exchange)
            close()
            if status == 503, ChatError.isLoading(body) { return try await waitForModel() }
            var failure = backend.client.failure(status: status, body: body)
            // A server may say anything; a job is not put off for longer than the longest tier.
            if failure.isRetryable { failure.retryAfterSeconds = exchange.retryAfterSeconds.map { min($0, 600) } }
            throw failure
        }
    }

    /// The watcher hears that the model loads; how long that may take is the run's own timeout.
    private func waitForModel() async throws {
        state.withLock { state in
            state.phase = .waiting
            state.ready.append(.progress(Progress(phase: .loading)))
        }
        // A watcher wants to see that it goes on, not a flood in the log.
        try await Task.sleep(for: .seconds(1))
    }

    private func read(_ exchange: HTTPExchange) async throws {
        let piece: [UInt8]?
        do { piece = try await exchange.next() } catch let error as HTTPError {
            close()
            throw failure(error)
        }
        try state.withLock { state in
            try decode(piece, &state)
            if state.decoder.isDone || piece == nil { try end(&state) }
        }
        if state.withLock({ $0.decoder.isDone }) { close() }
    }

    /// Takes in a piece of the body, or its end.
    private func decode(_ piece: [UInt8]?, _ state: inout State) throws(JobFailure) {
        var events: [[UInt8]] = []
        var fault: ServerSentEventParser.Fault?
        do throws(ServerSentEventParser.Fault) {
            if let piece {
                try state.parser.feed(piece, into: &events)
            } else {
                try state.parser.finish(into: &events)
            }
        } catch { fault = error }
        // What came before the fault may hold the end mark, or an error that says more.
        for event in events { state.ready += try state.decoder.decode(event) }
        guard let fault, !state.decoder.isDone else { return }
        switch fault {
        case .tooLong:
            throw JobFailure(.badReply, "\(backend.name) sent an event of more than 1 MiB", backend: backend.name)
        case .foreignLine(let start):
            let shown = ChatError.oneLine(String(decoding: start, as: UTF8.self))
            throw JobFailure(
                .badReply, "\(backend.name) sent what is no event: \(shown)", backend: backend.name, isRetryable: true)
        }
    }

    /// The server is done with this request, or gone.
    private func close() {
        let wasCounted = state.withLock { state in
            state.phase = .ended
            defer { state.isCounted = false }
            return state.isCounted
        }
        if wasCounted { backend.streamClosed() }
    }

    private func end(_ state: inout State) throws {
        state.phase = .ended
        // An end of the body alone is no success: a broken connection looks the same.
        guard state.decoder.isDone || state.decoder.finishReason != nil else {
            throw JobFailure(
                .badReply, "\(backend.name) ended its answer without an end mark", backend: backend.name,
                isRetryable: true)
        }
        if !state.decoder.isDone { state.ready += state.decoder.finish() }
        if !state.decoder.oddities.isEmpty {
            let names = state.decoder.oddities.map(\.rawValue).sorted().map(JSONValue.string)
            Log.warning("backend_oddities", ["backend": .string(backend.name), "oddities": .array(names)])
        }
        state.ready.append(
            .finished(
                state.decoder.finishReason ?? .stop, state.decoder.usage,
                tokensPerSecond: state.decoder.tokensPerSecond))
    }

    private func rest(of exchange: HTTPExchange) async throws -> [UInt8] {
        do { return try await exchange.body(limit: 65_536) } catch let error as HTTPError { throw failure(error) }
    }

    private func failure(_ error: HTTPError) -> JobFailure {
        JobFailure(.unavailable, "\(backend.name): \(error.message)", backend: backend.name, isRetryable: true)
    }

    /// Closes the connection, then looks until the server has freed the slot: it finishes the batch at hand first.
    func settle() async {
        guard case .open(let exchange) = state.withLock({ $0.phase }) else { return close() }
        await exchange.close()
        close()
        await backend.awaitFreeSlot()
    }
}
