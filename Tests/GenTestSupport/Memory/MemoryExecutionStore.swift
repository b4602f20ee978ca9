package import GenShared
import Synchronization

/// A store in memory that obeys the rules of the scripts for one job, and does as a test says: holds answers back,
/// loses its newest events, is away.
package final class MemoryExecutionStore: ExecutionStore {
    /// The calls that a test can make fail.
    package enum Call: Hashable, Sendable {
        case claim
        case release
        case finish
        case announce
    }

    private struct State {
        var owner: String?
        var jobState = JobState.queued
        var last = EventID.queued
        var log: [JobEvent] = []
        var attempt = 0
        var failures = 0
        var preempted = 0
        var isCancelWanted = false
        var claimReply: ClaimReply?
        var isSuspect = false
        var failure: JobFailure?
        var announced: [JobState] = []
        var batches: [EventBatch] = []
        var holdsAppends = false
        var held: [@Sendable () -> Void] = []
        var failingAppends = 0
        var errors: [Call: [StoreError]] = [:]
        var appendWaiters: [(count: Int, continuation: CheckedContinuation<Void, Never>)] = []
        var leases: [JobID: @Sendable (AppendReply) -> Void] = [:]
    }

    private let state = Mutex(State())

    package init(failures: Int = 0, preempted: Int = 0) {
        state.withLock { ($0.failures, $0.preempted) = (failures, preempted) }
    }

    // MARK: What a test looks at and does

    package var log: [JobEvent] { state.withLock { $0.log } }
    package var jobState: JobState { state.withLock { $0.jobState } }
    package var announced: [JobState] { state.withLock { $0.announced } }
    package var batches: [EventBatch] { state.withLock { $0.batches } }
    package var failures: Int { state.withLock { $0.failures } }
    package var preempted: Int { state.withLock { $0.preempted } }
    package var hasLeases: Bool { state.withLock { !$0.leases.isEmpty } }
    /// The chunks of the last attempt joined.
    package var text: String {
        var text = ""
        for event in log {
            if case .started = event.content { text = "" }
            if case .chunk(let piece) = event.content { text += piece }
        }
        return text
    }

    package func setCancelWanted() { state.withLock { $0.isCancelWanted = true } }
    package func answerClaims(with reply: ClaimReply) { state.withLock { $0.claimReply = reply } }
    /// A worker went away while the job ran.
    package func makeSuspect() { state.withLock { $0.isSuspect = true } }
    /// Somebody ended the job before.
    package func setFailed(_ failure: JobFailure) {
        state.withLock { ($0.jobState, $0.failure) = (.failed, failure) }
    }
    package func failNextAppends(_ count: Int) { state.withLock { $0.failingAppends = count } }
    /// The next calls of that kind throw these, one each, and do nothing.
    package func fail(_ call: Call, with errors: StoreError...) { state.withLock { $0.errors[call] = errors } }
    package func holdAppends() { state.withLock { $0.holdsAppends = true } }
    /// Another owner takes the job.
    package func steal() { state.withLock { $0.owner = "thief" } }
    /// Forgets the newest events, as a failover may.
    package func rollBack(to count: Int) {
        state.withLock { state in
            state.log = Array(state.log.prefix(count))
            state.last = state.log.last?.id ?? .queued
        }
    }
    /// Renews the leases now.
    package func renew() {
        let (listeners, wanted) = state.withLock { (Array($0.leases.values), $0.isCancelWanted) }
        for listener in listeners { listener(.ok(isCancelWanted: wanted)) }
    }

    /// Lets what is held back be answered, and holds back no more.
    package func letAppendsGo() {
        let held = state.withLock { state in
            state.holdsAppends = false
            defer { state.held = [] }
            return state.held
        }
        for answer in held { answer() }
    }

    /// Waits until that many appends were asked for.
    package func waitForAppends(_ count: Int) async {
        await withCheckedContinuation { continuation in
            let isThere = state.withLock { state in
                if state.batches.count >= count { return true }
                state.appendWaiters.append((count, continuation))
                return false
            }
            if isThere { continuation.resume() }
        }
    }

    // MARK: The port

    package func claim(_ request: ClaimRequest) async throws -> ClaimReply {
        try throwError(of: .claim)
        return state.withLock { state in
            if state.isSuspect, !request.mayBeSuspect { return .suspect }
            if let reply = state.claimReply { return reply }
            state.owner = request.owner
            state.jobState = .running
            state.attempt += 1
            let id = EventID(attempt: UInt64(state.attempt), sequence: 1)
            let content = JobEvent.Content.started(
                attempt: state.attempt, worker: "w", backend: nil, model: nil, restarted: state.attempt > 1)
            Self.add(JobEvent(id: id, previous: state.last, content: content), &state)
            return .claimed(
                Claim(
                    attempt: state.attempt, last: id, failures: state.failures, preempted: state.preempted,
                    queuedMilliseconds: 5, isCancelWanted: state.isCancelWanted))
        }
    }

    package func append(
        _ batch: EventBatch, completion: @escaping @Sendable (Result<AppendReply, StoreError>) -> Void
    ) {
        let (waiters, mayAnswer) = state.withLock { state in
            state.batches.append(batch)
            let count = state.batches.count
            let ready = state.appendWaiters.filter { $0.count <= count }.map(\.continuation)
            state.appendWaiters.removeAll { $0.count <= count }
            if state.holdsAppends { state.held.append { [self] in completion(take(batch)) } }
            return (ready, !state.holdsAppends)
        }
        if mayAnswer { completion(take(batch)) }
        for waiter in waiters { waiter.resume() }
    }

    private func take(_ batch: EventBatch) -> Result<AppendReply, StoreError> {
        state.withLock { state in
            if state.failingAppends > 0 {
                state.failingAppends -= 1
                return .failure(StoreError("away", isCertainlyUndone: false, isRetryable: true))
            }
            guard state.jobState == .running, state.owner == batch.owner else { return .success(.fenced) }
            if state.last < batch.previous { return .success(.behind(state.last)) }
            for event in batch.events where event.id > state.last {
                if let event = JobEvent(json: event.json) { Self.add(event, &state) }
            }
            return .success(.ok(isCancelWanted: state.isCancelWanted))
        }
    }

    package func keepLease(_ id: JobID, owner: String, listener: @escaping @Sendable (AppendReply) -> Void) {
        state.withLock { $0.leases[id] = listener }
    }

    package func dropLease(_ id: JobID, owner: String) { state.withLock { $0.leases[id] = nil } }

    package func release(_ release: JobRelease) async throws -> ReleaseReply {
        try throwError(of: .release)
        return state.withLock { state in
            guard state.jobState == .running, state.owner == release.owner else { return .fenced }
            if state.last < release.last { return .behind(state.last) }
            guard state.last == release.last else { return .fenced }
            if state.isCancelWanted {
                Self.end(.cancelled(by: nil, latencyMilliseconds: nil, partial: release.usage), .cancelled, &state)
                return .ended(.cancelled)
            }
            Self.add(JobEvent(id: state.last.next, previous: state.last, content: release.content), &state)
            state.jobState = .retrying
            if release.counter == .failure { state.failures += 1 }
            if release.counter == .preemption { state.preempted += 1 }
            return .released(failures: state.failures)
        }
    }

    package func finish(_ ending: JobEnding) async throws -> FinishReply {
        try throwError(of: .finish)
        return state.withLock { state in
            guard state.jobState == .running, state.owner == ending.owner else { return .fenced }
            if state.last < ending.previous { return .behind(state.last) }
            for event in ending.events where event.id > state.last {
                if let event = JobEvent(json: event.json) { Self.add(event, &state) }
            }
            let wanted = ending.content.terminalState ?? .failed
            if state.isCancelWanted, wanted != .cancelled {
                Self.end(.cancelled(by: nil, latencyMilliseconds: nil, partial: ending.usage), .cancelled, &state)
            } else {
                Self.end(ending.content, wanted, &state)
            }
            return .ended(state.jobState)
        }
    }

    package func record(_ id: JobID) async throws -> JobRecord? {
        state.withLock { state in
            var fields = ["state": state.jobState.rawValue, "last": state.last.description]
            fields["error"] = state.failure?.json
            return JobRecord(id: id, fields: fields)
        }
    }

    package func announce(_ id: JobID, state jobState: JobState, kind: String, tenant: String) async throws {
        try throwError(of: .announce)
        state.withLock { $0.announced.append(jobState) }
    }

    private func throwError(of call: Call) throws {
        let error = state.withLock { state in
            state.errors[call]?.isEmpty == false ? state.errors[call]?.removeFirst() : nil
        }
        if let error { throw error }
    }

    private static func add(_ event: JobEvent, _ state: inout State) {
        state.log.append(event)
        state.last = event.id
    }

    private static func end(_ content: JobEvent.Content, _ jobState: JobState, _ state: inout State) {
        add(JobEvent(id: state.last.next, previous: state.last, content: content), &state)
        state.jobState = jobState
    }
}
