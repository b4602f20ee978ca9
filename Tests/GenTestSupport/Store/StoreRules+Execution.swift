package import GenShared

extension StoreRules {
    package mutating func claim(_ request: ClaimRequest, at time: Int64) -> ClaimReply {
        let faults = faults
        return with(request.job.id) { entry, emission in
            var draft = entry
            let isNew = entry.state == nil
            if isNew {
                draft.fields = Self.newRecord(request.job, request.body)
                let made = request.job.createdAt?.milliseconds ?? time
                draft.fields["queued_at"] = String(min(made, time))
            }
            let reply = Self.claim(request, &draft, &emission, time, faults)
            // What only tells how things stand makes no record.
            if case .claimed = reply { entry = draft }
            if case .ended = reply { entry = draft }
            return reply
        }
    }

    private static func claim(
        _ request: ClaimRequest, _ entry: inout Entry, _ emission: inout Emission, _ time: Int64, _ faults: Set<Fault>
    ) -> ClaimReply {
        guard let state = entry.state else { return .suspect }
        if state.isTerminal, !faults.contains(.claimIgnoresEnd) { return .terminal(state) }
        let lease = entry.integer("lease_until")
        let isOwn = state == .running && request.formerOwner != nil && entry.fields["owner"] == request.formerOwner
        if state == .running, lease > time, !isOwn {
            if entry.fields["owner"] == request.owner { return .claimed(given(entry, time)) }
            if !faults.contains(.claimIgnoresLease) { return .busy(.milliseconds(lease - time)) }
        }
        if entry.flag != nil {
            emission.cancel(&entry, time)
            return .ended(.cancelled)
        }
        var crashes = entry.integer("crashes")
        let expires = entry.integer("expires_at")
        if state == .running, !isOwn {
            if !faults.contains(.crashesNotCounted) { crashes += 1 }
            if crashes >= crashLimit {
                let reason = "\(crashes) workers went away while they ran this job"
                fail("poison", reason, &entry, &emission, time, crashes)
                return .ended(.failed)
            }
        } else if state != .running, expires > 0, expires <= time {
            emission.conclude(.expired, &entry, "\"type\":\"expired\"", time)
            return .ended(.expired)
        }
        let failures = entry.integer("failures")
        if failures >= failureLimit {
            fail("exhausted", "\(failures) attempts failed", &entry, &emission, time, crashes)
            return .ended(.failed)
        }
        let wait = entry.integer("not_before")
        if wait > time, !faults.contains(.noWait) { return .wait(.milliseconds(wait - time)) }
        if crashes > 0, !request.mayBeSuspect { return .suspect }
        start(request, &entry, &emission, time, crashes)
        return .claimed(given(entry, time))
    }

    private static func start(
        _ request: ClaimRequest, _ entry: inout Entry, _ emission: inout Emission, _ time: Int64, _ crashes: Int64
    ) {
        let attempt = UInt64(entry.integer("attempt") + 1)
        let id = EventID(attempt: attempt, sequence: 1)
        var fields = "\"type\":\"started\",\"attempt\":\(attempt),\(request.startedFields)"
        if attempt > 1 { fields += ",\"restarted\":true" }
        emission.emit(id, Emission.compose(id, entry.last, fields), &entry)
        entry.fields["state"] = "running"
        entry.fields["attempt"] = String(attempt)
        entry.fields["owner"] = request.owner
        entry.fields["crashes"] = String(crashes)
        entry.fields["lease_until"] = String(time + leaseMilliseconds)
        entry.fields["last"] = id.description
        entry.fields["started_at"] = String(time)
        let who = (try? JSONParser.parse("{\(request.startedFields)}"))  // The caller's own; a broken one names nobody.
        for name in ["worker", "backend", "model"] { entry.fields[name] = who?[name]?.string ?? "" }
    }

    private static func given(_ entry: Entry, _ time: Int64) -> Claim {
        Claim(
            attempt: Int(entry.integer("attempt")), last: entry.last, failures: Int(entry.integer("failures")),
            crashes: Int(entry.integer("crashes")), preempted: Int(entry.integer("preempted")),
            queuedMilliseconds: Int(time - entry.integer("queued_at")), isCancelWanted: entry.flag != nil)
    }

    private static func fail(
        _ code: String, _ message: String, _ entry: inout Entry, _ emission: inout Emission, _ time: Int64,
        _ crashes: Int64
    ) {
        let failure = "{\"code\":\"\(code)\",\"message\":\"\(message)\",\"retryable\":false}"
        emission.conclude(
            .failed, &entry, "\"type\":\"failed\",\"error\":\(failure)", time,
            [("error", failure), ("crashes", String(crashes))])
    }

    package mutating func renew(_ id: JobID, owner: String, at time: Int64) -> AppendReply {
        let faults = faults
        return with(id) { entry, _ in
            guard Self.isOwner(owner, entry, faults) else { return .fenced }
            entry.fields["lease_until"] = String(time + Self.leaseMilliseconds)
            return .ok(isCancelWanted: entry.flag != nil)
        }
    }

    package mutating func append(_ batch: EventBatch, at time: Int64) -> AppendReply {
        let faults = faults
        return with(batch.id) { entry, emission in
            guard Self.isOwner(batch.owner, entry, faults) else { return .fenced }
            if entry.last < batch.previous, !faults.contains(.appendIgnoresPrevious) { return .behind(entry.last) }
            guard Self.add(batch.events, after: batch.previous, &entry, &emission, faults) else { return .fenced }
            entry.fields["lease_until"] = String(time + Self.leaseMilliseconds)
            return .ok(isCancelWanted: entry.flag != nil)
        }
    }

    package mutating func release(_ release: JobRelease, at time: Int64) -> ReleaseReply {
        let faults = faults
        return with(release.id) { entry, emission in
            if entry.state == .retrying, entry.fields["released_by"] == release.owner {
                return .released(failures: Int(entry.integer("failures")))
            }
            guard Self.isOwner(release.owner, entry, faults) else { return .fenced }
            if entry.last < release.last { return .behind(entry.last) }
            guard entry.last == release.last else { return .fenced }
            if entry.flag != nil, !faults.contains(.finishIgnoresFlag) {
                emission.cancel(&entry, time, usage: release.usage?.json ?? "")
                return .ended(.cancelled)
            }
            let id = entry.last.next
            emission.emit(id, Emission.compose(id, entry.last, release.content.fields), &entry)
            if release.counter != .nothing, !(release.counter == .failure && faults.contains(.failuresNotCounted)) {
                let name = release.counter.rawValue
                entry.fields[name] = String(entry.integer(name) + 1)
            }
            if release.counter == .nothing, faults.contains(.refundByDecrement) {
                entry.fields["attempt"] = String(entry.integer("attempt") - 1)
            }
            entry.fields["state"] = "retrying"
            entry.fields["owner"] = ""
            entry.fields["released_by"] = release.owner
            entry.fields["lease_until"] = "0"
            entry.fields["last"] = id.description
            entry.fields["not_before"] = String(time + Int64(release.delay.milliseconds))
            return .released(failures: Int(entry.integer("failures")))
        }
    }

    package mutating func finish(_ ending: JobEnding, at time: Int64) -> FinishReply {
        let faults = faults
        return with(ending.id) { entry, emission in
            if let state = entry.state, state.isTerminal, entry.fields["owner"] == ending.owner { return .ended(state) }
            guard Self.isOwner(ending.owner, entry, faults) else { return .fenced }
            if entry.last < ending.previous { return .behind(entry.last) }
            guard Self.add(ending.events, after: ending.previous, &entry, &emission, faults) else { return .fenced }
            let wanted = ending.content.terminalState ?? .failed
            let usage = ending.usage?.json ?? ""
            if wanted == .cancelled || (entry.flag != nil && !faults.contains(.finishIgnoresFlag)) {
                emission.cancel(&entry, time, usage: usage)
                return .ended(.cancelled)
            }
            emission.conclude(
                wanted, &entry, ending.content.fields, time, [("usage", usage)] + ending.content.recordFields)
            return .ended(wanted)
        }
    }

    package mutating func announce(_ id: JobID, state: JobState) { record(announcement: (id, state)) }

    private static func isOwner(_ owner: String, _ entry: Entry, _ faults: Set<Fault>) -> Bool {
        guard entry.state == .running else { return false }
        return entry.fields["owner"] == owner || faults.contains(.noFence)
    }

    /// Adds the events that are not there yet.
    /// - Returns: whether the log ends in one of them, or in the one before them.
    private static func add(
        _ events: [(id: EventID, json: String)], after previous: EventID, _ entry: inout Entry,
        _ emission: inout Emission, _ faults: Set<Fault>
    ) -> Bool {
        var start = 0
        if entry.last != previous {
            if let index = events.firstIndex(where: { $0.id == entry.last }) {
                start = index + 1
            } else if !faults.contains(.appendIgnoresPrevious), !faults.contains(.noFence) {
                return false
            }
        }
        for event in events[start...] {
            emission.emit(event.id, event.json, &entry)
            entry.fields["last"] = event.id.description
        }
        return true
    }
}
