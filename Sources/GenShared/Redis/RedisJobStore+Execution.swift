extension RedisJobStore: ExecutionStore {
    package func claim(_ request: ClaimRequest) async throws -> ClaimReply {
        let job = request.job
        var command = command(.claim, job.id)
        command.append(request.owner)
        command.append(timing.length.milliseconds)
        command.append(request.startedFields)
        command.append(request.mayBeSuspect ? 1 : 0)
        command.append(request.formerOwner ?? "")
        var reply = try await call(command)
        if reply.word == "missing" {
            // Another client's message: the record is made of it. Ours have one already, and are spared the bytes.
            command.append(request.body)
            command.append(job.kind.rawValue)
            command.append(job.tenant)
            command.append(job.pool)
            command.append(job.lane.rawValue)
            command.append(job.createdAt.map { String($0.milliseconds) } ?? "")
            command.append(job.expiresAt.map { String($0.milliseconds) } ?? "")
            reply = try await call(command)
        }
        switch reply.word {
        case "claimed":
            return .claimed(
                Claim(
                    attempt: reply.integer(0), last: try reply.eventID(1), failures: reply.integer(2),
                    crashes: reply.integer(3), preempted: reply.integer(4), queuedMilliseconds: reply.integer(5),
                    isCancelWanted: reply.integer(6) == 1))
        case "terminal": return .terminal(try reply.state(0))
        case "ended": return .ended(try reply.state(0))
        case "busy": return .busy(.milliseconds(reply.integer(0)))
        case "suspect": return .suspect
        case "wait": return .wait(.milliseconds(reply.integer(0)))
        default: throw reply.unexpected
        }
    }

    package func append(
        _ batch: EventBatch, completion: @escaping @Sendable (Result<AppendReply, StoreError>) -> Void
    ) {
        var command = command(.append, batch.id)
        command.append(batch.owner)
        command.append(batch.previous.description)
        command.append(timing.length.milliseconds)
        for event in batch.events {
            command.append(event.id.description)
            command.append(event.json)
        }
        connection.post(command) { completion(AppendReply.decode($0)) }
    }

    package func keepLease(_ id: JobID, owner: String, listener: @escaping @Sendable (AppendReply) -> Void) {
        leases.keep(id, owner: owner, listener: listener)
    }

    package func dropLease(_ id: JobID, owner: String) { leases.drop(id, owner: owner) }

    package func release(_ release: JobRelease) async throws -> ReleaseReply {
        var command = command(.release, release.id)
        command.append(release.owner)
        command.append(release.last.description)
        command.append(release.counter.rawValue)
        command.append(release.delay.milliseconds)
        command.append(release.content.fields)
        command.append(release.usage?.json ?? "")
        let reply = try await call(command)
        switch reply.word {
        case "released": return .released(failures: reply.integer(0))
        case "ended": return .ended(try reply.state(0))
        case "behind": return .behind(try reply.eventID(0))
        case "fenced": return .fenced
        default: throw reply.unexpected
        }
    }

    package func finish(_ ending: JobEnding) async throws -> FinishReply {
        var command = command(.finish, ending.id)
        command.append(ending.owner)
        command.append(ending.previous.description)
        command.append(ending.content.terminalState?.rawValue ?? JobState.failed.rawValue)
        command.append(ending.content.fields)
        command.append(ending.usage?.json ?? "")
        command.append(ending.events.count)
        for event in ending.events {
            command.append(event.id.description)
            command.append(event.json)
        }
        for (name, value) in ending.content.recordFields {
            command.append(name)
            command.append(value)
        }
        let reply = try await call(command)
        switch reply.word {
        case "ok": return .ended(try reply.state(0))
        case "behind": return .behind(try reply.eventID(0))
        case "fenced": return .fenced
        default: throw reply.unexpected
        }
    }

    package func announce(_ id: JobID, state: JobState, kind: String, tenant: String) async throws {
        // `~` lets Redis trim whole nodes only, which costs nothing.
        let command = RedisCommand(
            "XADD", JobKeys.done, "MAXLEN", "~", "100000", "*", "id", id.rawValue, "state", state.rawValue, "kind",
            kind, "tenant", tenant)
        _ = try await self.reply(to: command)
    }
}

extension AppendReply {
    static func decode(_ result: Result<RedisReply, RedisError>) -> Result<AppendReply, StoreError> {
        do {
            let reply = try ScriptReply(try result.get())
            switch reply.word {
            case "ok": return .success(.ok(isCancelWanted: reply.integer(0) == 1))
            case "behind": return .success(.behind(try reply.eventID(0)))
            case "fenced": return .success(.fenced)
            default: return .failure(reply.unexpected)
            }
        } catch let error as RedisError {
            return .failure(StoreError(error))
        } catch let error as StoreError {
            return .failure(error)
        } catch {
            return .failure(StoreError("\(error)", isCertainlyUndone: false, isRetryable: false))
        }
    }
}

extension JobEvent.Content {
    /// What the record keeps of an end beside state and usage.
    package var recordFields: [(String, String)] {
        switch self {
        case .completed(let completion):
            return [
                ("result", completion.result), ("finish_reason", completion.finishReason.rawValue),
                ("stats", completion.stats.json),
            ]
        case .failed(let failure, _): return [("error", failure.json)]
        default: return []
        }
    }
}
