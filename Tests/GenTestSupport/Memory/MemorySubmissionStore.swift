package import GenShared
import Synchronization

/// A store of submitted jobs and their keys in memory, which obeys the rules of the scripts.
package final class MemorySubmissionStore: SubmissionStore, SubmissionKeyStore {
    /// The calls that a test can make fail or hang.
    package enum Call: Hashable, Sendable, CaseIterable {
        case create
        case reject
        case record
        case cancel
        case accept
        case hold
    }

    package struct Entry: Sendable {
        package var state: JobState
        package var body: [UInt8]
        package var attempt = 0
        package var failure: JobFailure?
        package var isCancelWanted = false
        package var expiresAt: Timestamp?
    }

    private struct Reserved {
        var id: JobID
        var payload: SHA256Digest
        var isAccepted = false
    }

    private struct State {
        var jobs: [JobID: Entry] = [:]
        var reserved: [SHA256Digest: Reserved] = [:]
        var held: [SHA256Digest: (id: JobID, since: ContinuousClock.Instant)] = [:]
        var errors: [Call: [StoreError]] = [:]
        var hanging: Set<Call> = []
        var afterHold: (@Sendable () -> Void)?
        var isSlow = false
    }

    private let state = Mutex(State())
    private let scheduler: any Scheduler

    package init(scheduler: any Scheduler) { self.scheduler = scheduler }

    // MARK: What a test looks at and does

    package subscript(id: JobID) -> Entry? {
        get { state.withLock { $0.jobs[id] } }
        set { state.withLock { $0.jobs[id] = newValue } }
    }
    /// A job that is there already, in that state.
    package func put(_ job: Job, _ jobState: JobState) {
        self[job.id] = Entry(state: jobState, body: job.body, expiresAt: job.expiresAt)
    }
    package var jobs: [JobID: Entry] { state.withLock { $0.jobs } }
    package var reservations: [JobID: Bool] {
        state.withLock { state in
            Dictionary(state.reserved.values.map { ($0.id, $0.isAccepted) }, uniquingKeysWith: { $0 || $1 })
        }
    }
    package var holders: [JobID] { state.withLock { $0.held.values.map(\.id) } }
    package func forgetReservations() { state.withLock { $0.reserved = [:] } }
    /// Another job has taken every unique key over.
    package func giveHolds(to thief: JobID) {
        let now = scheduler.now
        state.withLock { state in state.held = state.held.mapValues { _ in (thief, now) } }
    }
    /// The next calls of that kind throw these, one each, and do nothing.
    package func fail(_ call: Call, with errors: StoreError...) { state.withLock { $0.errors[call] = errors } }
    /// Calls of that kind are never answered in time.
    package func hang(_ call: Call) { state.withLock { _ = $0.hanging.insert(call) } }
    /// Happens once, between the next taking of a unique key and what follows.
    package func afterNextHold(_ body: @escaping @Sendable () -> Void) { state.withLock { $0.afterHold = body } }

    /// From now on each call takes a random time, so that several submissions meet in every order.
    package func beSlow() { state.withLock { $0.isSlow = true } }

    private func enter(_ call: Call? = nil) async throws {
        if state.withLock({ $0.isSlow }) {
            await scheduler.sleepUncancelled(for: .milliseconds(scheduler.random() % 20))
        }
        guard let call else { return }
        let (error, hangs): (StoreError?, Bool) = state.withLock { state in
            let isLeft = state.errors[call]?.isEmpty == false
            return (isLeft ? state.errors[call]?.removeFirst() : nil, state.hanging.contains(call))
        }
        if hangs { await scheduler.sleepUncancelled(for: .seconds(3600)) }
        if let error { throw error }
    }

    // MARK: Jobs

    package func create(_ job: Job, body: [UInt8]) async throws -> CreateReply {
        try await enter(.create)
        return state.withLock { state in
            if let entry = state.jobs[job.id] { return .exists(state: entry.state, isSameBody: entry.body == body) }
            state.jobs[job.id] = Entry(state: .queued, body: body, expiresAt: job.expiresAt)
            return .created
        }
    }

    package func cancel(_ id: JobID, by: String) async throws -> CancelReply {
        try await enter(.cancel)
        return state.withLock { state in
            guard let entry = state.jobs[id] else { return .unknown }
            if entry.state.isTerminal { return .terminal(entry.state) }
            state.jobs[id]?.isCancelWanted = true
            if entry.state == .running { return .flagged }
            state.jobs[id]?.state = .cancelled
            return .cancelled
        }
    }

    package func reject(_ id: JobID, failure: JobFailure, rejected: RejectedMessage) async throws -> JobState? {
        try await enter(.reject)
        return state.withLock { state in
            let entry = state.jobs[id] ?? Entry(state: .queued, body: rejected.body)
            if entry.state.isTerminal { return entry.state }
            if entry.state == .running { return nil }
            state.jobs[id] = entry
            state.jobs[id]?.state = .failed
            state.jobs[id]?.failure = failure
            return .failed
        }
    }

    package func message(_ id: JobID) async throws -> [UInt8]? {
        try await enter()
        return self[id]?.body
    }

    package func expire(_ id: JobID) async throws {
        let now = scheduler.timestamp
        state.withLock { state in
            guard let entry = state.jobs[id], entry.state == .queued, let end = entry.expiresAt, end <= now else {
                return
            }
            state.jobs[id]?.state = .expired
        }
    }

    package func record(_ id: JobID) async throws -> JobRecord? {
        try await enter(.record)
        guard let entry = self[id] else { return nil }
        var fields = ["state": entry.state.rawValue, "attempt": String(entry.attempt), "kind": "slogan"]
        fields["error"] = entry.failure?.json
        fields["expires_at"] = entry.expiresAt.map { String($0.milliseconds) }
        return JobRecord(id: id, fields: fields)
    }

    package func events(_ id: JobID, from: EventID, limit: Int) async throws -> LogPage {
        LogPage(lines: [], isWhole: true)
    }

    // MARK: Keys

    package func reserve(
        _ key: SHA256Digest, for id: JobID, payload: SHA256Digest
    ) async throws -> Reservation {
        try await enter()
        return state.withLock { state in
            guard let there = state.reserved[key] else {
                state.reserved[key] = Reserved(id: id, payload: payload)
                return .reserved
            }
            return there.payload == payload ? .same(there.id, isAccepted: there.isAccepted) : .other(there.id)
        }
    }

    package func accept(_ key: SHA256Digest, by id: JobID) async throws -> Bool {
        try await enter(.accept)
        return state.withLock { state in
            guard state.reserved[key]?.id == id else { return false }
            state.reserved[key]?.isAccepted = true
            return true
        }
    }

    package func withdraw(_ key: SHA256Digest, from id: JobID) async throws -> Bool {
        try await enter()
        return state.withLock { state in
            guard let there = state.reserved[key], there.id == id else { return true }
            if there.isAccepted { return false }
            state.reserved[key] = nil
            return true
        }
    }

    package func hold(_ key: SHA256Digest, for id: JobID, after holder: JobID?) async throws -> HoldReply {
        try await enter(.hold)
        let now = scheduler.now
        let (reply, after): (HoldReply, (@Sendable () -> Void)?) = state.withLock { state in
            if let there = state.held[key], there.id != id, there.id != holder {
                return (.busy(there.id, age: now - there.since), nil)
            }
            let reply = state.held[key]?.id == id ? HoldReply.kept : .held
            if reply == .held { state.held[key] = (id, now) }
            defer { state.afterHold = nil }
            return (reply, state.afterHold)
        }
        after?()
        return reply
    }

    package func letGo(_ key: SHA256Digest, by id: JobID) async throws {
        try await enter()
        state.withLock { if $0.held[key]?.id == id { $0.held[key] = nil } }
    }
}
