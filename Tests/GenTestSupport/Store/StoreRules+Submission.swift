package import GenShared

extension StoreRules {
    package mutating func create(_ job: Job, body: [UInt8], at time: Int64) -> CreateReply {
        with(job.id) { entry, emission in
            if let state = entry.state {
                return .exists(
                    state: state, isSameBody: entry.fields["message"] == String(decoding: body, as: UTF8.self))
            }
            entry.fields = Self.newRecord(job, body)
            entry.fields["queued_at"] = String(time)
            emission.published.append(
                (emission.channel, Emission.compose(.queued, .origin, "\"type\":\"queued\"")))
            return .created
        }
    }

    package mutating func cancel(_ id: JobID, by: String, at time: Int64) -> CancelReply {
        var broadcast = false
        let reply: CancelReply = with(id) { entry, emission in
            if let state = entry.state, state.isTerminal { return .terminal(state) }
            if entry.flag == nil { entry.flag = (by, time) }
            guard let state = entry.state else { return .unknown }
            if state == .running, entry.integer("lease_until") > time {
                broadcast = true
                return .flagged
            }
            emission.cancel(&entry, time)
            return .cancelled
        }
        if broadcast { published.append((JobKeys.control, "cancel \(id)")) }
        return reply
    }

    package mutating func reject(
        _ id: JobID, failure: JobFailure, rejected: RejectedMessage, at time: Int64
    ) -> JobState? {
        with(id) { entry, emission in
            if let state = entry.state {
                if state.isTerminal { return state }
                if state == .running, entry.integer("lease_until") > time { return nil }
            } else {
                entry.fields = [
                    "message": String(decoding: rejected.body, as: UTF8.self), "kind": rejected.kind,
                    "tenant": "default", "pool": rejected.pool, "lane": rejected.lane.rawValue, "created_at": "",
                    "queued_at": String(time), "attempt": "0",
                ]
            }
            emission.conclude(
                .failed, &entry, "\"type\":\"failed\",\"error\":\(failure.json)", time, [("error", failure.json)])
            return .failed
        }
    }

    package mutating func expire(_ id: JobID, at time: Int64) {
        with(id) { entry, emission in
            let expires = entry.integer("expires_at")
            guard entry.state == .queued || entry.state == .retrying, expires > 0, expires <= time else { return }
            emission.conclude(.expired, &entry, "\"type\":\"expired\"", time)
        }
    }

    package func message(_ id: JobID) -> [UInt8]? { entries[id]?.fields["message"].map { Array($0.utf8) } }

    package func record(_ id: JobID) -> JobRecord? {
        entries[id].flatMap { JobRecord(id: id, fields: $0.fields) }
    }

    package func events(_ id: JobID, from: EventID, limit: Int) -> LogPage {
        let lines = (entries[id]?.log ?? []).lazy.filter { $0.id >= from }.prefix(limit).map(\.json)
        return LogPage(lines: Array(lines), isWhole: lines.count < limit)
    }

    static func newRecord(_ job: Job, _ body: [UInt8]) -> [String: String] {
        [
            "state": "queued", "message": String(decoding: body, as: UTF8.self), "kind": job.kind.rawValue,
            "tenant": job.tenant, "pool": job.pool, "lane": job.lane.rawValue,
            "created_at": job.createdAt.map { String($0.milliseconds) } ?? "",
            "expires_at": job.expiresAt.map { String($0.milliseconds) } ?? "", "attempt": "0", "failures": "0",
            "crashes": "0", "preempted": "0", "last": "0-1", "owner": "", "lease_until": "0", "not_before": "0",
        ]
    }
}
