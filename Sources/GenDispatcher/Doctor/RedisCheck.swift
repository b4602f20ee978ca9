import GenShared

/// Looks at Redis and at the workers that report to it.
struct RedisCheck {
    let url: RedisURL

    func run() async -> [Finding] {
        let connection = RedisConnection(url: url, name: "gendispatcher-doctor")
        var findings: [Finding] = []
        do throws(RedisError) {
            let info = RedisInfo(try await connection.send(RedisCommand("INFO")).string ?? "")
            findings.append(.fine("Redis \(info.version) at \(url.place)"))
            findings += info.findings()
            findings += await permissions(connection)
            findings.append(await workers(connection))
        } catch {
            findings.append(Finding(severity: .fault, text: error.message, isUnreachable: true))
        }
        await connection.close()
        return findings
    }

    /// Does, with names that no job has, what jobs need.
    private func permissions(_ connection: RedisConnection) async -> [Finding] {
        let user = url.user ?? "default"
        var faults: [Finding] = []
        func attempt(_ command: RedisCommand, _ what: String, _ rule: String) async -> RedisReply? {
            do throws(RedisError) { return try await connection.send(command) } catch {
                faults.append(.fault("\(what) refused (\(error.message)); \(rule)"))
                return nil
            }
        }
        let allow = "for NOPERM: `ACL SETUSER \(user)"
        _ = await attempt(
            RedisCommand("SET", "gen:doctor", "1", "PX", "1000"), "writing a key is", "\(allow) ~gen:* +@all`")
        _ = await attempt(RedisCommand("PUBLISH", "gen:doctor", "1"), "publishing is", "\(allow) &gen:* +publish`")
        let scripts = "\(allow) +eval +evalsha +script|load`"
        if let digest = await attempt(RedisCommand("SCRIPT", "LOAD", "return 1"), "loading scripts is", scripts)?.string
        {
            _ = await attempt(RedisCommand("EVALSHA", digest, "0"), "running scripts is", scripts)
        }
        return faults.isEmpty ? [.fine("keys, channels and scripts may be used")] : faults
    }

    private func workers(_ connection: RedisConnection) async -> Finding {
        do throws(RedisError) {
            let since = Timestamp.now.milliseconds - 30_000
            let reply = try await connection.send(RedisCommand("ZRANGEBYSCORE", JobKeys.workers, "\(since)", "+inf"))
            let count = reply.array?.count ?? 0
            guard count > 0 else { return .warning("no worker was seen in the last 30 s; start `genworker run`") }
            return .fine("\(count) worker\(count == 1 ? "" : "s") seen in the last 30 s")
        } catch { return .warning("workers cannot be listed: \(error.message)") }
    }
}
