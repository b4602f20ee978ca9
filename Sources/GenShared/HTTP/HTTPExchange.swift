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
    package func status() async throws -> Int {
        while true {
            try Task.checkCancellation()
            let known: Result<Int, HTTPError>? = state.withLock { state in
                if let status = state.status { return .success(status) }
                if case .failure(let error) = state.end { return .failure(error) }
                return state.end == nil ? nil : .failure(HTTPError(.connectionLost, "the answer has no head"))
            }
            if let known { return try known.get() }
            await news { $0.status != nil || $0.end != nil }
        }
    }

    /// The next piece of the body; `nil` at its end.
    /// - Throws: `HTTPError` when it ends early, or `CancellationError` when the task is cancelled.
    package func next() async throws -> [UInt8]? {
        while true {
            try Task.checkCancellation()
            let (piece, end, mustResume) = state.withLock { state -> ([UInt8]?, Result<Void, HTTPError>?, Bool) in
                guard state.pieces.isEmpty else {
                    let piece = state.pieces.count == 1 ? state.pieces[0] : Array(state.pieces.joined())
                    state.pieces = []
                    state.buffered = 0
                    defer { state.isPaused = false }
                    return (piece, nil, state.isPaused)
                }
                return (nil, state.end, false)
            }
            if mustResume { client.post(.resume(number)) }
            if let piece { return piece }
            if let end {
                try end.get()
                return nil
            }
            await news { !$0.pieces.isEmpty || $0.end != nil }
        }
    }

    /// The whole body, at most that many bytes.
    /// - Throws: as `next`; `HTTPError` with `invalid` for a longer one.
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
    package func close() async {
        abort()
        while state.withLock({ $0.end == nil }) { await news(ignoringCancellation: true) { $0.end != nil } }
    }

    /// Waits until there may be what the caller wants. A cancelled task closes the connection, whose end is the news.
    private func news(ignoringCancellation: Bool = false, _ isWanted: (State) -> Bool) async {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let hasNews = state.withLock { state in
                    if isWanted(state) { return true }
                    // A second reader would strand the first: let the first look again.
                    state.reader?.resume()
                    state.reader = continuation
                    return false
                }
                if hasNews { continuation.resume() }
            }
        } onCancel: {
            // May run before the continuation is registered: it only posts, and the end wakes whoever waits.
            if !ignoringCancellation { abort() }
        }
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
