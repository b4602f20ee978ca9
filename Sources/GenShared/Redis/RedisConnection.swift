import Glibc
import Synchronization

/// One pipelined connection for commands and scripts, on a thread of its own.
///
/// Commands of all tasks are posted to a mailbox; whatever lies there when the thread turns goes out in one write. The
/// connection is made on first use and made anew after a loss; a command that is posted meanwhile fails at once with
/// `unreachable`, a command that was under way fails with `connectionLost`. Nothing waits longer than the timeouts.
package actor RedisConnection {
    package typealias Completion = @Sendable (Result<RedisReply, RedisError>) -> Void

    private struct Request: Sendable {
        let command: RedisCommand
        let completion: Completion
    }

    private struct Pending {
        let request: Request
        let sentAt: ContinuousClock.Instant
        var isFallback = false
    }

    private struct Timer {
        let interval: Duration
        var due: ContinuousClock.Instant
        let body: @Sendable () -> Void
    }

    private nonisolated let executor: PinnedExecutor
    private nonisolated let mailbox = Mailbox<Request>()
    private let url: RedisURL
    private let scripts: [RedisScript]
    private let name: String
    private let timeouts: RedisTimeouts
    private let clock = ContinuousClock()

    private var handle: RedisHandle?
    private var digests: [String: [UInt8]] = [:]
    private var pending = Queue<Pending>()
    private var isFlushed = true
    private var retryAt: ContinuousClock.Instant?
    private var backoff = Backoff(first: .milliseconds(50), limit: .seconds(2))
    private var lastFailure = RedisError(.unreachable, "not connected to Redis yet")
    private var timers: [Timer] = []
    private var isClosed = false

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// A connection that is made when the first command comes.
    /// - Parameters:
    ///   - name: shown by `CLIENT LIST`.
    ///   - scripts: loaded after each connect.
    package init(
        url: RedisURL, name: String, scripts: [RedisScript] = [], timeouts: RedisTimeouts = RedisTimeouts()
    ) {
        self.url = url
        self.name = name
        self.scripts = scripts
        self.timeouts = timeouts
        executor = PinnedExecutor(name: "redis")
        executor.poll(self)
    }

    isolated deinit { shutDown() }

    /// Posts a command; the completion runs on the connection's thread and must not block.
    package nonisolated func post(_ command: RedisCommand, _ completion: @escaping Completion) {
        guard mailbox.post(Request(command: command, completion: completion)) else {
            completion(.failure(RedisError(.closed, "the Redis connection is closed")))
            return
        }
        executor.wake()
    }

    /// Sends a command and waits for its reply.
    ///
    /// An error reply is thrown. Cancellation of the task does not shorten the wait, which the timeouts bound: a
    /// command that was sent runs in any case.
    package nonisolated func send(_ command: RedisCommand) async throws(RedisError) -> RedisReply {
        let result: Result<RedisReply, RedisError> = await withCheckedContinuation { continuation in
            post(command) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    /// Calls the body on this connection's thread again and again, whatever the pool is busy with.
    package func every(_ interval: Duration, _ body: @escaping @Sendable () -> Void) {
        timers.append(Timer(interval: interval, due: clock.now + interval, body: body))
    }

    /// Fails what is under way and refuses everything after.
    package func close() { shutDown() }

    private func shutDown() {
        isClosed = true
        let error = RedisError(.closed, "the Redis connection is closed")
        handle = nil
        timers = []
        for request in mailbox.close() { request.completion(.failure(error)) }
        for entry in pending.removeAll() { entry.request.completion(.failure(error)) }
    }
}

// MARK: - The thread's turn

extension RedisConnection: PollSource {
    package nonisolated func service() { assumeIsolated { $0.turn() } }
    package nonisolated var hasWork: Bool { !mailbox.isEmpty }

    package nonisolated func wait(wake: Int32) {
        let (descriptor, events, timeout) = assumeIsolated { connection in
            (
                connection.handle?.descriptor ?? -1, connection.isFlushed ? POLLIN : POLLIN | POLLOUT,
                connection.nextTimeout()
            )
        }
        pollDescriptor(descriptor, events: events, wake: wake, timeoutMilliseconds: timeout)
    }

    private func turn() {
        fireTimers()
        let requests = mailbox.takeAll()
        do throws(RedisError) {
            if !requests.isEmpty { try transmit(requests) }
            guard let handle else { return }
            if !isFlushed { isFlushed = try handle.flush() }
            try handle.fill()
            while let reply = try handle.nextReply() { try settle(reply) }
            try checkAge()
        } catch {
            lose(error)
        }
    }

    /// Sends requests, or fails those that there is no connection for.
    private func transmit(_ requests: [Request]) throws(RedisError) {
        var rest = requests[...]
        do throws(RedisError) {
            let handle = try connected()
            while let request = rest.first {
                try enqueue(request, on: handle, isFallback: false)
                rest = rest.dropFirst()
            }
        } catch {
            for request in rest { request.completion(.failure(error)) }
            if handle != nil { throw error }
        }
    }

    private func enqueue(_ request: Request, on handle: RedisHandle, isFallback: Bool) throws(RedisError) {
        if let script = request.command.script {
            let count = Array(String(request.command.keyCount).utf8)
            if let digest = digests[script.name], !isFallback {
                try handle.append(request.command, head: [Array("EVALSHA".utf8), digest, count])
            } else {
                try handle.append(request.command, head: [Array("EVAL".utf8), Array(script.body.utf8), count])
            }
        } else {
            try handle.append(request.command)
        }
        pending.append(Pending(request: request, sentAt: clock.now, isFallback: isFallback))
        isFlushed = false
    }

    private func settle(_ reply: RedisReply) throws(RedisError) {
        guard let entry = pending.popFirst() else {
            throw RedisError(.unexpectedReply, "Redis sent a reply that nobody asked for")
        }
        guard case .error(let text) = reply else {
            entry.request.completion(.success(reply))
            return
        }
        let word = String(text.prefix { $0 != " " })
        // SCRIPT FLUSH or a restart made Redis forget: send the whole text once, which teaches it again.
        if word == "NOSCRIPT", !entry.isFallback, let handle {
            try enqueue(entry.request, on: handle, isFallback: true)
            isFlushed = try handle.flush()
            return
        }
        entry.request.completion(.failure(RedisError(.refused(word), "Redis: \(text)")))
        // A demoted primary stays connected and refuses every write: look for the new one.
        if word == "READONLY" { throw RedisError(.connectionLost, "Redis at \(url.place) is a replica now") }
    }

    private func connected() throws(RedisError) -> RedisHandle {
        if let handle { return handle }
        if isClosed { throw RedisError(.closed, "the Redis connection is closed") }
        if let retryAt, clock.now < retryAt { throw lastFailure }
        do throws(RedisError) {
            let end = clock.now + timeouts.setUp
            let fresh = try RedisSession.open(url: url, name: name, timeouts: timeouts, until: end)
            // Those that a slow Redis has learned in an earlier try are not sent again.
            for script in scripts where digests[script.name] == nil {
                let reply = try fresh.call(
                    RedisCommand("SCRIPT", "LOAD", script.body),
                    timeoutMilliseconds: RedisSession.milliseconds(until: end))
                // Refused, by an ACL say: the script is sent whole each time, and EVAL reports what is wrong.
                if case .bulk(let digest) = reply { digests[script.name] = digest }
            }
            handle = fresh
            isFlushed = true
            retryAt = nil
            backoff.reset()
            return fresh
        } catch {
            lastFailure = RedisError(.unreachable, error.message)
            retryAt = clock.now + backoff.next()
            throw lastFailure
        }
    }

    private func lose(_ error: RedisError) {
        handle = nil
        isFlushed = true
        lastFailure = error
        for entry in pending.removeAll() {
            entry.request.completion(.failure(RedisError(.connectionLost, error.message)))
        }
    }

    private func checkAge() throws(RedisError) {
        guard let oldest = pending.first, clock.now - oldest.sentAt > timeouts.command else { return }
        throw RedisError(
            .connectionLost, "Redis at \(url.place) did not answer within \(timeouts.command.milliseconds) ms")
    }

    private func fireTimers() {
        guard !timers.isEmpty else { return }
        let now = clock.now
        for index in timers.indices where timers[index].due <= now {
            timers[index].due = now + timers[index].interval
            timers[index].body()
        }
    }

    private func nextTimeout() -> Int32 {
        var deadline = timers.map(\.due).min()
        if let oldest = pending.first {
            let limit = oldest.sentAt + timeouts.command
            deadline = min(deadline ?? limit, limit)
        }
        guard let deadline else { return -1 }
        return Int32(clamping: (deadline - clock.now).milliseconds + 1)
    }
}
