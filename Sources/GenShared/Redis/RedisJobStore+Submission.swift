extension RedisJobStore: SubmissionStore {
    package func create(_ job: Job, body: [UInt8]) async throws -> CreateReply {
        var command = command(.create, job.id)
        command.append(body)
        command.append(job.kind.rawValue)
        command.append(job.tenant)
        command.append(job.pool)
        command.append(job.lane.rawValue)
        command.append(job.createdAt.map { String($0.milliseconds) } ?? "")
        command.append(job.expiresAt.map { String($0.milliseconds) } ?? "")
        let reply = try await call(command)
        switch reply.word {
        case "created": return .created
        case "exists": return .exists(state: try reply.state(0), isSameBody: reply.integer(1) == 1)
        default: throw reply.unexpected
        }
    }

    package func cancel(_ id: JobID, by: String) async throws -> CancelReply {
        var command = command(.cancel, id)
        command.append(by)
        command.append(JobKeys.control)
        command.append(id.rawValue)
        let reply = try await call(command)
        switch reply.word {
        case "cancelled": return .cancelled
        case "flagged": return .flagged
        case "terminal": return .terminal(try reply.state(0))
        case "unknown": return .unknown
        default: throw reply.unexpected
        }
    }

    package func reject(_ id: JobID, failure: JobFailure, rejected: RejectedMessage) async throws -> JobState? {
        var command = command(.reject, id)
        command.append(failure.json)
        command.append(rejected.body)
        for text in [rejected.kind, "default", rejected.pool, rejected.lane.rawValue, ""] { command.append(text) }
        let reply = try await call(command)
        switch reply.word {
        case "rejected": return .failed
        case "terminal": return try reply.state(0)
        default: return nil
        }
    }

    package func message(_ id: JobID) async throws -> [UInt8]? {
        guard case .bulk(let body) = try await reply(to: RedisCommand("HGET", JobKeys(id).record, "message")) else {
            return nil
        }
        return body
    }

    package func expire(_ id: JobID) async throws {
        _ = try await call(command(.expire, id))
    }

    package func record(_ id: JobID) async throws -> JobRecord? {
        var command = RedisCommand("HMGET", JobKeys(id).record)
        for name in JobRecord.fieldNames { command.append(name) }
        let values = try await reply(to: command).array ?? []
        var fields: [String: String] = [:]
        for (name, value) in zip(JobRecord.fieldNames, values) { fields[name] = value.string }
        return JobRecord(id: id, fields: fields)
    }

    /// More pages of strangers' entries than that are not ours to read through.
    private static let pageLimit = 16

    package func events(_ id: JobID, from: EventID, limit: Int) async throws -> LogPage {
        var page = LogPage(lines: [], isWhole: false)
        var start = from.description
        for _ in 0..<Self.pageLimit where page.lines.count < limit && !page.isWhole {
            let count = limit - page.lines.count
            let command = RedisCommand("XRANGE", JobKeys(id).events, start, "+", "COUNT", String(count))
            let entries = try await reply(to: command).array ?? []
            // An entry is its id and its fields; foreign ones without our field are passed over, but not without going
            // on behind them.
            for parts in entries.compactMap(\.array) where parts.count == 2 {
                if let id = parts[0].string { start = "(\(id)" }
                guard let fields = parts[1].array, fields.count >= 2, fields[0].string == "e",
                    let line = fields[1].string
                else { continue }
                page.lines.append(line)
            }
            page.isWhole = entries.count < count
        }
        return page
    }

    /// Sends a plain command and waits for its reply.
    package func reply(to command: RedisCommand) async throws(StoreError) -> RedisReply {
        do throws(RedisError) { return try await connection.send(command) } catch {
            throw StoreError(error, about: command)
        }
    }
}
