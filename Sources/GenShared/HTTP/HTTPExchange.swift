import Synchronization

/// One request under way: its status, then its body piece by piece.
///
/// Pull-based: what is not taken stays, and beyond a bound the transfer is paused, so that a slow reader slows the
/// sender instead of filling memory. Read by one task at a time. Cancelling the reading task, or dropping the
/// exchange, closes the connection.
package final class HTTPExchange: Sendable {
    /// Bytes that are held for a reader before the transfer is paused.
    static let bufferLimit = 256 << 10

    struct State {
        var status: Int?
        var retryAfterSeconds = 0
        var pieces: [[UInt8]] = []
        var buffered = 0
        var isPaused = false
        var end: Result<Void, HTTPError>?
        var reader: CheckedContinuation<Void, Never>?
    }

    let state = Mutex(State())
    private let client: HTTPClient
    let number: UInt64

    init(client: HTTPClient, number: UInt64) {
        self.client = client
        self.number = number
    }

    deinit { client.post(.abandon(number)) }

    /// The status code, once the answer's head has come.
    /// - Throws: `HTTPError`, or `CancellationError` when the task is cancelled.
    @inline(never)
    package func status() async throws -> Int {
        while true {
            try endIfCancelled()
            if let status = try knownStatus() { return status }
            await news(.head)
        }
    }

    /// Seconds after which the server asks to come again, from its head's `Retry-After`; `nil` where it says nothing.
    @inline(never)
    package var retryAfterSeconds: Int? {
        let seconds = state.withLock { $0.retryAfterSeconds }
        return seconds > 0 ? seconds : nil
    }

    /// The next piece of the body; `nil` at its end.
    /// - Throws: `HTTPError` when it ends early, or `CancellationError` when the task is cancelled.
    @inline(never)
    package func next() async throws -> [UInt8]? {
        while true {
            try endIfCancelled()
            if let piece = takePiece() { return piece }
            if try hasEnded() { return nil }
            await news(.body)
        }
    }

    // The locked parts stand apart from the async ones and are never inlined there: the optimiser of Swift 6.3.1
    // crashes while splitting the coroutine otherwise.

    /// A task that is cancelled before it waits must close the connection, too.
    private func endIfCancelled() throws(CancellationError) {
        guard Task.isCancelled else { return }
        abort()
        throw CancellationError()
    }

    @inline(never)
    private func knownStatus() throws(HTTPError) -> Int? {
        let (status, end) = state.withLock { ($0.status, $0.end) }
        if let status { return status }
        guard let end else { return nil }
        try end.get()
        throw HTTPError(.connectionLost, "the answer has no head")
    }

    @inline(never)
    private func hasEnded() throws(HTTPError) -> Bool {
        // Looked at before the pieces are, an end could overtake the last of them.
        let (end, isDrained) = state.withLock { ($0.end, $0.pieces.isEmpty) }
        guard let end, isDrained else { return false }
        try end.get()
        return true
    }

    @inline(never)
    private func takePiece() -> [UInt8]? {
        let (piece, mustResume) = state.withLock { state -> ([UInt8]?, Bool) in
            guard !state.pieces.isEmpty else { return (nil, false) }
            var piece = state.pieces.removeFirst()
            piece.reserveCapacity(state.buffered)
            for next in state.pieces { piece.append(contentsOf: next) }
            state.pieces.removeAll(keepingCapacity: true)
            state.buffered = 0
            defer { state.isPaused = false }
            return (piece, state.isPaused)
        }
        if mustResume { client.post(.resume(number)) }
        return piece
    }

    /// The whole body, at most that many bytes.
    /// - Throws: as `next`; `HTTPError` with `invalid` for a longer one.
    @inline(never)
    package func body(limit: Int) async throws -> [UInt8] {
        var body: [UInt8] = []
        while let piece = try await next() {
            body.append(contentsOf: piece)
            guard body.count <= limit else {
                abort()
                throw HTTPError(.invalid, "the answer is longer than \(limit) bytes")
            }
        }
        return body
    }

    /// Closes the connection without waiting for it.
    package func abort() {
        if !client.post(.abandon(number)) {
            update { if $0.end == nil { $0.end = .failure(HTTPError(.closed, "the HTTP client is closed")) } }
        }
    }

    /// Closes the connection and returns when it is closed.
    @inline(never)
    package func close() async {
        abort()
        while state.withLock({ $0.end == nil }) { await news(.end) }
    }

    private enum Wanted {
        case head
        case body
        case end
    }

    /// Waits until there may be what the caller wants.
    ///
    /// A cancelled task closes the connection, whose end is the news.
    @inline(never)
    private func news(_ wanted: Wanted) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { register($0, wanted) }
        } onCancel: {
            // May run before the continuation is registered: it only posts, and the end wakes whoever waits.
            abort()
        }
    }

    private func register(_ continuation: CheckedContinuation<Void, Never>, _ wanted: Wanted) {
        let hasNews = state.withLock { state in
            let isThere =
                switch wanted {
                case .head: state.status != nil
                case .body: !state.pieces.isEmpty
                case .end: false
                }
            if isThere || state.end != nil { return true }
            // A second reader would strand the first: let the first look again.
            state.reader?.resume()
            state.reader = continuation
            return false
        }
        if hasNews { continuation.resume() }
    }

    /// Changes the state and wakes the reader; called on the client's thread.
    func update<Value>(_ change: (inout State) -> Value) -> Value {
        let (value, reader) = state.withLock { state in
            let value = change(&state)
            let reader = state.reader
            state.reader = nil
            return (value, reader)
        }
        reader?.resume()
        return value
    }
}
