import CHiredis
import Glibc

/// Owner of one hiredis context: connects, sends and reads without ever blocking on the socket.
///
/// Not Sendable: it lives inside one actor, on that actor's thread, as hiredis demands (one context, one thread). Any
/// error of the context is final, so the owner throws the handle away and makes a new one: a context that goes on
/// after an error answers with the reply of the command before.
final class RedisHandle {
    private let context: UnsafeMutablePointer<redisContext>
    private var arguments: [UnsafePointer<CChar>?] = []
    private var lengths: [Int] = []
    private var scratch: [UInt8] = []

    /// Connects; blocks at most for the timeout.
    init(host: String, port: Int, timeoutMilliseconds: Int) throws(RedisError) {
        let limit = timeval(tv_sec: timeoutMilliseconds / 1000, tv_usec: timeoutMilliseconds % 1000 * 1000)
        guard let context = redisConnectWithTimeout(host, Int32(port), limit) else {
            throw RedisError(.unreachable, "no memory for a Redis connection")
        }
        self.context = context
        guard context.pointee.err == 0 else {
            // The context is freed by deinit, which runs also for an object whose init throws this late.
            let reason = Self.errorText(context)
            throw RedisError(.unreachable, "cannot reach Redis at \(host):\(port): \(reason)")
        }
        // A child process must not inherit the socket, or the server would not see us go.
        _ = fcntl(context.pointee.fd, F_SETFD, FD_CLOEXEC)
        _ = fcntl(context.pointee.fd, F_SETFL, fcntl(context.pointee.fd, F_GETFL) | O_NONBLOCK)
        // Tells hiredis that EAGAIN is no error from here on.
        context.pointee.flags &= ~Int32(REDIS_BLOCK)
    }

    deinit { redisFree(context) }

    var descriptor: Int32 { context.pointee.fd }

    /// Puts a command into the output buffer.
    func append(_ command: RedisCommand, head: [[UInt8]] = []) throws(RedisError) {
        scratch.removeAll(keepingCapacity: true)
        lengths.removeAll(keepingCapacity: true)
        arguments.removeAll(keepingCapacity: true)
        for word in head {
            scratch.append(contentsOf: word)
            lengths.append(word.count)
        }
        scratch.append(contentsOf: command.buffer)
        lengths.append(contentsOf: command.lengths)
        let result = scratch.withUnsafeBytes { bytes -> Int32 in
            var offset = 0
            // An empty buffer has no address, but hiredis wants one for each argument, also for empty ones.
            let base = bytes.bindMemory(to: CChar.self).baseAddress ?? Self.emptyArgument
            for length in lengths {
                arguments.append(base + offset)
                offset += length
            }
            return redisAppendCommandArgv(context, Int32(lengths.count), &arguments, &lengths)
        }
        guard result == REDIS_OK else { throw failure("the command cannot be buffered") }
    }

    // Never written to and never freed: the address of an empty argument.
    nonisolated(unsafe) private static let emptyArgument = UnsafePointer(
        UnsafeMutablePointer<CChar>.allocate(capacity: 1))

    /// Writes as much as the socket takes.
    /// - Returns: whether everything has been written.
    func flush() throws(RedisError) -> Bool {
        var done: Int32 = 0
        guard redisBufferWrite(context, &done) == REDIS_OK else { throw failure("writing failed") }
        return done != 0
    }

    /// Reads what has come, if anything.
    func fill() throws(RedisError) {
        guard redisBufferRead(context) == REDIS_OK else { throw failure("reading failed") }
    }

    /// The next whole reply that has been read.
    func nextReply() throws(RedisError) -> RedisReply? {
        var pointer: UnsafeMutableRawPointer?
        guard redisGetReplyFromReader(context, &pointer) == REDIS_OK else { throw failure("the reply is broken") }
        guard let pointer else { return nil }
        defer { freeReplyObject(pointer) }
        return RedisReply(copying: pointer.assumingMemoryBound(to: redisReply.self).pointee)
    }

    /// Sends one command and waits for its reply: for the set-up of a connection only.
    func call(_ command: RedisCommand, timeoutMilliseconds: Int) throws(RedisError) -> RedisReply {
        try append(command)
        let clock = ContinuousClock()
        let deadline = clock.now + .milliseconds(timeoutMilliseconds)
        while true {
            let isFlushed = try flush()
            if let reply = try nextReply() { return reply }
            let remaining = (deadline - clock.now).milliseconds
            guard remaining > 0 else { throw RedisError(.connectionLost, "Redis did not answer in time") }
            var descriptor = pollfd(
                fd: context.pointee.fd, events: Int16(isFlushed ? POLLIN : POLLIN | POLLOUT), revents: 0)
            _ = poll(&descriptor, 1, Int32(remaining))
            if descriptor.revents & Int16(POLLIN | POLLHUP | POLLERR) != 0 { try fill() }
        }
    }

    private func failure(_ what: String) -> RedisError {
        RedisError(.connectionLost, "the connection to Redis was lost: \(what): \(Self.errorText(context))")
    }

    private static func errorText(_ context: UnsafeMutablePointer<redisContext>) -> String {
        withUnsafeBytes(of: context.pointee.errstr) { bytes in
            String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
        }
    }
}
