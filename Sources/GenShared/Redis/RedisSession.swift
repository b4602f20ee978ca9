/// How long Redis may take.
package struct RedisTimeouts: Sendable {
    /// To accept a connection.
    package var connect: Duration = .seconds(2)
    /// To answer a command; then the connection counts as lost.
    package var command: Duration = .seconds(5)

    package init() {}
}

/// Makes a connection ready for use, in the order that every new context needs: connect, AUTH, SELECT, name.
enum RedisSession {
    /// Opens a session with the one host, or with that of several which is the primary at the moment.
    /// - Throws: `RedisError`: the last host's, where none will do.
    static func open(url: RedisURL, name: String, timeouts: RedisTimeouts) throws(RedisError) -> RedisHandle {
        guard url.hosts.count > 1 else { return try open(url.hosts[0], url, name, timeouts) }
        var failure = RedisError(.unreachable, "there is no host of Redis to connect to")
        // In their order: the first is usually the primary.
        for host in url.hosts {
            do throws(RedisError) {
                let handle = try open(host, url, name, timeouts)
                let role = try handle.call(RedisCommand("ROLE"), timeoutMilliseconds: timeouts.command.milliseconds)
                if role.array?.first?.string == "master" { return handle }
                failure = RedisError(.unreachable, "Redis at \(url.place): none is the primary (\(host) is a replica)")
            } catch { failure = error }
        }
        throw failure
    }

    private static func open(
        _ host: ServerAddress, _ url: RedisURL, _ name: String, _ timeouts: RedisTimeouts
    ) throws(RedisError) -> RedisHandle {
        let handle = try RedisHandle(
            host: host.host, port: host.port, timeoutMilliseconds: timeouts.connect.milliseconds)
        let limit = timeouts.command.milliseconds
        if let password = url.password {
            var command = RedisCommand("AUTH")
            if let user = url.user { command.append(user) }
            command.append(password.reveal())
            try check(handle.call(command, timeoutMilliseconds: limit), "logging in to Redis at \(host)")
        }
        if url.database != 0 {
            let command = RedisCommand("SELECT", String(url.database))
            try check(handle.call(command, timeoutMilliseconds: limit), "choosing database \(url.database)")
        }
        // A name helps whoever reads CLIENT LIST; a user without the right to set one can live without it.
        _ = try handle.call(RedisCommand("CLIENT", "SETNAME", name), timeoutMilliseconds: limit)
        return handle
    }

    private static func check(_ reply: RedisReply, _ what: String) throws(RedisError) {
        guard case .error(let text) = reply else { return }
        throw RedisError(.refused(String(text.prefix { $0 != " " })), "\(what) failed: \(text)")
    }
}
