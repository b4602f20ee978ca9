import CRabbitMQ
import Glibc

/// Owner of one librabbitmq connection with one channel.
///
/// Not Sendable: the library is not thread-safe, so the handle lives inside one actor, on that actor's thread. All
/// methods are synchronous; those that wait for the broker are bounded by the library's timeouts. After any error the
/// owner throws the handle away: only destroying is allowed then.
final class AMQPHandle {
    static let channel: amqp_channel_t = 1
    /// The broker's own default: smaller frames are refused by RabbitMQ 4.1 below 8 KiB, and cost system calls.
    private static let frameLimit: Int32 = 131_072
    private static let heartbeatSeconds: Int32 = 10

    let state: amqp_connection_state_t
    /// The broker's version, such as `3.10.8`.
    private(set) var serverVersion = ""
    /// Whether the channel confirms what is published.
    var confirms = false
    /// Grows when the channel is opened again: tags of the one before are void.
    var channelNumber = 0
    private var isUsable = true

    /// Of several nodes of a cluster each gets that long to accept and to greet, so that a dead one does not use up all
    /// the time.
    private static let nodeLimit: Duration = .seconds(2)

    /// Connects to the first host that answers, in random order, so that many clients spread over a cluster.
    ///
    /// Blocks at most for the time that one call may take, over all hosts and steps; looking a name up is the resolver's
    /// own time.
    /// - Throws: `AMQPError`: the last host's, where none answers.
    static func connect(url: AMQPURL, name: String, timeouts: AMQPTimeouts) throws(AMQPError) -> AMQPHandle {
        let end = ContinuousClock.now + timeouts.call
        var timeouts = timeouts
        if url.hosts.count > 1 { timeouts.connect = min(timeouts.connect, nodeLimit) }
        var failure = AMQPError(.unreachable, "there is no host of RabbitMQ to connect to")
        for (index, host) in url.hosts.shuffled().enumerated() {
            // Those after it get their share, however long one says nothing.
            let share = ContinuousClock.now + (end - .now) / (url.hosts.count - index)
            do throws(AMQPError) {
                return try AMQPHandle(url: url, host: host, name: name, timeouts: timeouts, until: share)
            } catch {
                failure = error
                // The nodes of a cluster share their users: what one refuses they all refuse.
                guard error.code == .unreachable else { break }
            }
        }
        throw failure
    }

    /// Connects, logs in and opens the channel, all by that moment.
    private init(
        url: AMQPURL, host: ServerAddress, name: String, timeouts: AMQPTimeouts, until end: ContinuousClock.Instant
    ) throws(AMQPError) {
        guard let state = amqp_new_connection() else {
            throw AMQPError(.unreachable, "no memory for a RabbitMQ connection")
        }
        self.state = state
        do throws(AMQPError) {
            try openSocket(url, host, Self.left(until: end, atMost: timeouts.connect))
            var login = timeval(Self.left(until: end, atMost: timeouts.connect))
            amqp_set_handshake_timeout(state, &login)
            try logIn(url, host, name)
            var rest = timeval(Self.left(until: end, atMost: timeouts.call))
            amqp_set_rpc_timeout(state, &rest)
            amqp_channel_open(state, Self.channel)
            do throws(AMQPError) { try checkReply("opening a channel") } catch {
                // Nothing was sent: that host is of no use, but another may be.
                guard error.code == .connectionLost else { throw error }
                throw AMQPError(.unreachable, "RabbitMQ at \(host): \(error.message)")
            }
            var call = timeval(timeouts.call)
            amqp_set_rpc_timeout(state, &call)
        } catch {
            amqp_destroy_connection(state)
            isUsable = false
            throw error
        }
    }

    /// What is left of a set-up's time; never zero, which the library takes for "at once".
    private static func left(until end: ContinuousClock.Instant, atMost limit: Duration) -> Duration {
        max(.milliseconds(1), min(limit, end - .now))
    }

    deinit { if isUsable { amqp_destroy_connection(state) } }

    var descriptor: Int32 { amqp_get_sockfd(state) }

    /// Whether frames can be read without waiting.
    var hasBufferedFrames: Bool { amqp_frames_enqueued(state) != 0 || amqp_data_in_buffer(state) != 0 }

    /// Gives memory of frames back; call when no pointer into a frame is held.
    func releaseBuffers() { amqp_maybe_release_buffers(state) }

    /// Says good-bye to a broker that still answers.
    func close() {
        guard isUsable else { return }
        isUsable = false
        var limit = timeval(tv_sec: 1, tv_usec: 0)
        amqp_set_rpc_timeout(state, &limit)
        amqp_connection_close(state, AMQP_REPLY_SUCCESS)
        amqp_destroy_connection(state)
    }

    // MARK: Set-up

    private func openSocket(_ url: AMQPURL, _ host: ServerAddress, _ limit: Duration) throws(AMQPError) {
        guard let socket = url.isEncrypted ? amqp_ssl_socket_new(state) : amqp_tcp_socket_new(state) else {
            throw AMQPError(.unreachable, "no memory for a socket")
        }
        if url.isEncrypted {
            // 0.11 has no call for the system's own store and no lower bound for the version.
            guard amqp_ssl_socket_set_cacert(socket, "/etc/ssl/certs/ca-certificates.crt") == 0 else {
                throw AMQPError(
                    .unreachable, "amqps:// needs the system's certificates: install the package ca-certificates")
            }
            amqp_ssl_socket_set_ssl_versions(socket, AMQP_TLSv1_2, AMQP_TLSvLATEST)
        }
        var connect = timeval(limit)
        errno = 0
        let result = amqp_socket_open_noblock(socket, host.host, Int32(host.port), &connect)
        guard result == AMQP_STATUS_OK.rawValue else {
            // The library's own word is only "socket error"; the system knows why.
            // EINPROGRESS is left from the connect that was begun, and tells nothing.
            let isTelling = errno != 0 && errno != EINPROGRESS
            let reason = isTelling ? String(cString: strerror(errno)) : Self.text(result)
            throw AMQPError(.unreachable, "cannot reach RabbitMQ at \(host): \(reason)")
        }
        // A child process must not inherit the socket, or the broker would not see us go.
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
    }

    private func logIn(_ url: AMQPURL, _ host: ServerAddress, _ name: String) throws(AMQPError) {
        // Without these capabilities a deleted queue, a blocked publisher and a refused message go unreported.
        let capabilities: [(String, AMQPTable.Value)] = [
            ("consumer_cancel_notify", .bool(true)), ("connection.blocked", .bool(true)),
            ("publisher_confirms", .bool(true)), ("basic.nack", .bool(true)),
            ("authentication_failure_close", .bool(true)),
        ]
        let properties: [(String, AMQPTable.Value)] = [
            ("connection_name", .text(name)), ("capabilities", .table(capabilities)),
        ]
        let reply = AMQPTable.with(properties) { table in
            withUnsafePointer(to: table) {
                crabbitmq_login_plain(
                    state, url.virtualHost, Self.frameLimit, Self.heartbeatSeconds, $0, url.user,
                    url.password.reveal())
            }
        }
        do throws(AMQPError) { try check(reply, "logging in") } catch {
            // A broker that refuses the credentials closes the connection with 403, since we say that we understand
            // that; one that does not know the virtual host says 530. A connection that is only lost may have been
            // lost for any reason.
            let refusals: [AMQPError.Code] = [.refused(403), .refused(530)]
            let isRefusal = refusals.contains(error.code)
            throw AMQPError(
                isRefusal ? .unauthorized : .unreachable,
                isRefusal
                    ? "RabbitMQ at \(host) refuses user \"\(url.user)\" or vhost \"\(url.virtualHost)\": "
                        + "\(error.message)"
                    : "RabbitMQ at \(host): \(error.message)")
        }
        if let properties = amqp_get_server_properties(state)?.pointee {
            for index in 0..<Int(properties.num_entries) {
                let entry = properties.entries[index]
                if entry.key.text == "version" { serverVersion = entry.value.value.bytes.text }
            }
        }
    }

    // MARK: Replies

    func checkReply(_ what: String) throws(AMQPError) { try check(amqp_get_rpc_reply(state), what) }

    func check(_ reply: amqp_rpc_reply_t, _ what: String) throws(AMQPError) {
        switch reply.reply_type {
        case AMQP_RESPONSE_NORMAL: return
        case AMQP_RESPONSE_SERVER_EXCEPTION: throw serverException(reply.reply, what)
        case AMQP_RESPONSE_LIBRARY_EXCEPTION:
            throw AMQPError(.connectionLost, "\(what) failed: \(Self.text(reply.library_error))")
        default: throw AMQPError(.connectionLost, "\(what) failed: the broker did not answer")
        }
    }

    private func serverException(_ method: amqp_method_t, _ what: String) -> AMQPError {
        guard let decoded = method.decoded else {
            return AMQPError(.connectionLost, "\(what) failed: the broker closed the channel")
        }
        switch method.id {
        case MethodID.channelClose:
            let close = decoded.assumingMemoryBound(to: amqp_channel_close_t.self).pointee
            return AMQPError(.refused(Int(close.reply_code)), "\(what) failed: \(close.reply_text.text)")
        case MethodID.connectionClose:
            let close = decoded.assumingMemoryBound(to: amqp_connection_close_t.self).pointee
            // An operator, a shutdown or a fault of the broker ended the connection: that is no answer to the call.
            let isForced = close.reply_code == 320 || close.reply_code == 541
            return AMQPError(
                isForced ? .connectionLost : .refused(Int(close.reply_code)), "\(what) failed: \(close.reply_text.text)"
            )
        default: return AMQPError(.connectionLost, "\(what) failed: the broker answered out of turn")
        }
    }

    static func text(_ status: Int32) -> String {
        amqp_error_string2(status).map { String(cString: $0) } ?? "error \(status)"
    }
}

extension timeval {
    init(_ duration: Duration) {
        self.init(tv_sec: duration.milliseconds / 1000, tv_usec: duration.milliseconds % 1000 * 1000)
    }
}

/// Numbers of the methods that we read: class in the high half, method in the low.
///
/// From AMQP 0-9-1 and RabbitMQ's extensions of it. The library's macros carry a cast, which Swift does not import.
enum MethodID {
    static let connectionClose: UInt32 = 0x000A_0032
    static let connectionBlocked: UInt32 = 0x000A_003C
    static let connectionUnblocked: UInt32 = 0x000A_003D
    static let channelClose: UInt32 = 0x0014_0028
    static let channelCloseOK: UInt32 = 0x0014_0029
    static let connectionCloseOK: UInt32 = 0x000A_0033
    static let basicCancel: UInt32 = 0x003C_001E
    static let basicReturn: UInt32 = 0x003C_0032
    static let basicDeliver: UInt32 = 0x003C_003C
    static let basicAck: UInt32 = 0x003C_0050
    static let basicNack: UInt32 = 0x003C_0078
}
