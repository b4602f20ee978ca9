extension RedisJobStore: SubmissionKeyStore {
    package func reserve(
        _ key: SHA256Digest, for id: JobID, payload: SHA256Digest
    ) async throws -> Reservation {
        let name = JobKeys.idempotency(key)
        let reply = try await call(command(.reserve, name, id.rawValue, payload.description))
        switch reply.word {
        case "reserved": return .reserved
        case "same": return .same(try holder(reply, name), isAccepted: reply.integer(1) == 1)
        case "other": return .other(try holder(reply, name))
        default: throw reply.unexpected
        }
    }

    package func accept(_ key: SHA256Digest, by id: JobID) async throws -> Bool {
        try await call(command(.accept, JobKeys.idempotency(key), id.rawValue)).word == "accepted"
    }

    package func withdraw(_ key: SHA256Digest, from id: JobID) async throws -> Bool {
        try await call(command(.free, JobKeys.idempotency(key), id.rawValue)).word == "free"
    }

    package func hold(_ key: SHA256Digest, for id: JobID, after holder: JobID?) async throws -> HoldReply {
        let name = JobKeys.unique(key)
        let reply = try await call(command(.hold, name, id.rawValue, holder?.rawValue ?? ""))
        switch reply.word {
        case "held": return .held
        case "kept": return .kept
        case "busy": return .busy(try self.holder(reply, name), age: .milliseconds(reply.integer(1)))
        default: throw reply.unexpected
        }
    }

    package func letGo(_ key: SHA256Digest, by id: JobID) async throws {
        _ = try await call(command(.free, JobKeys.unique(key), id.rawValue))
    }

    private func command(_ script: RedisScript, _ key: String, _ values: String...) -> RedisCommand {
        var command = RedisCommand(script: script, keys: [key])
        for value in values { command.append(value) }
        return command
    }

    private func holder(_ reply: ScriptReply, _ name: String) throws(StoreError) -> JobID {
        guard let id = JobID(reply.string(0)) else {
            throw StoreError(
                "the key \(name) in Redis holds something that is not ours; delete it", isCertainlyUndone: true,
                isRetryable: false)
        }
        return id
    }
}
