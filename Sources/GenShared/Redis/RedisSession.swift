/// How long Redis may take.
package struct RedisTimeouts: Sendable {
    /// To accept a connection.
    package var connect: Duration = .seconds(2)
    /// To answer a command; then the connection counts as lost.
    package var command: Duration = .seconds(5)
    /// To make a connection ready for use, over all hosts and steps; looking a name up is the resolver's own time.
    var setUp: Duration { connect + command }

    package init() {}
}

/// Makes a connection ready for use, in the order that every new context needs: connect, AUTH, SELECT, name.
enum RedisSession {
    /// Opens a session with the one host, or with that of several which is the primary at the moment.
    /// - Parameter end: when it must be open; `nil` for the time that a set-up may take.
    /// - Throws: `RedisError`: the last host's, where none will do.
    static func open(
        url: RedisURL, name: String, timeouts: RedisTimeouts, until end: ContinuousClock.Instant? = nil
    ) throws(RedisError) -> RedisHandle {
        let end = end ?? .now + timeouts.setUp
        guard url.hosts.count > 1 else { return try open(url.hosts[0], url, name, timeouts, end) }
        var failure = RedisError(.unreachable, "there is no host of Redis to connect to")
        // In their order: the first is usually the primary.
        for (index, host) in url.hosts.enumerated() {
            // Those after it get their share, however long one says nothing.
            let share = ContinuousClock.now + (end - .now) / (url.hosts.count - index)
            do throws(RedisError) {
                let handle = try open(host, url, name, timeouts, share)
                let role = try handle.call(RedisCommand("ROLE"), timeoutMilliseconds: milliseconds(until: share))
                try check(role, "asking Redis at \(host) for its role")
                if role.array?.first?.string == "master" { return handle }
                failure = RedisError(.unreachable, "Redis at \(url.place): none is the primary (\(host) is a replica)")
            } catch { failure = error }
        }
        throw failure
    }

    /// What is left of a set-up's time; never less than what tells an answer that is there already.
    static func milliseconds(until end: ContinuousClock.Instant) -> Int { max(1, (end - .now).milliseconds) }

    private static func open(
        _ host: ServerAddress, _ url: RedisURL, _ name: String, _ timeouts: RedisTimeouts,
        _ end: ContinuousClock.Instant
    ) throws(RedisError) -> RedisHandle {
        let handle = try RedisHandle(
            host: host.host, port: host.port,
            timeoutMilliseconds: min(timeouts.connect.milliseconds, milliseconds(until: end)))
        if let password = url.password {
            var command = RedisCommand("AUTH")
            if let user = url.user { command.append(user) }
            command.append(password.reveal())
            let reply = try handle.call(command, timeoutMilliseconds: milliseconds(until: end))
            try check(reply, "logging in to Redis at \(host)")
        }
        if url.database != 0 {
            let command = RedisCommand("SELECT", String(url.database))
            let reply = try handle.call(command, timeoutMilliseconds: milliseconds(until: end))
            try check(reply, "choosing database \(url.database)")
        }
        // A name helps whoever reads CLIENT LIST; a user without the right to set one can live without it.
        _ = try handle.call(RedisCommand("CLIENT", "SETNAME", name), timeoutMilliseconds: milliseconds(until: end))
        return handle
    }

    private static func check(_ reply: RedisReply, _ what: String) throws(RedisError) {
        guard case .error(let text) = reply else { return }
        throw RedisError(.refused(String(text.prefix { $0 != " " })), "\(what) failed: \(text)")
    }
}
