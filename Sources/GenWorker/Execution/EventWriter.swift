import GenShared
import Synchronization

/// Writes an attempt's events to the store, in order, one append at a time.
///
/// What arrives while an append is under way is joined into the next: a lone job has the latency of one round trip, a
/// loaded worker coalesces by itself, without timers. Appends are posted, not awaited, and their answers come on the
/// store's thread, so that a piece of text costs no task switch. Text that the store does not take is kept and sent
/// again byte for byte, within bounds.
final class EventWriter: Sendable {
    private struct State {
        /// The last event that has an id, and the last that the store is known to have.
        var last: EventID
        var stored: EventID
        /// Every event with an id that the store may still ask for again.
        var sent: [(id: EventID, json: String)] = []
        /// Content that has no id yet.
        var pending: [JobEvent.Content] = []
        var pendingBytes = 0
        var isInFlight = false
        var isFenced = false
        var failingSince: ContinuousClock.Instant?
        var backoff = Backoff(first: .milliseconds(50), limit: .seconds(2))
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    /// Stored events that are kept for a store that is set back by a failover.
    ///
    /// Seconds of text at any speed, and a bound for a backend that never ends. What is asked for beyond it is gone, and
    /// the attempt with it.
    private static let keptLimit = 20_000

    /// Text that waits for the store beyond this stops the reader; an unreachable store is waited for that long.
    private static let bufferLimit = 1 << 20
    private static let patience: Duration = .seconds(60)

    private let id: JobID
    private let owner: String
    private let store: any ExecutionStore
    private let running: RunningJob
    private let scheduler: any Scheduler
    private let state: Mutex<State>

    init(
        id: JobID, owner: String, last: EventID, store: any ExecutionStore, running: RunningJob,
        scheduler: any Scheduler = SystemScheduler()
    ) {
        self.scheduler = scheduler
        self.id = id
        self.owner = owner
        self.store = store
        self.running = running
        state = Mutex(State(last: last, stored: last))
    }

    /// Takes the next content.
    ///
    /// Returns at once unless the store is far behind.
    func write(_ content: JobEvent.Content) async {
        let (batch, isFull) = state.withLock { state in
            Self.join(content, to: &state)
            return (takeBatch(&state), state.pendingBytes > Self.bufferLimit)
        }
        if let batch { send(batch) }
        if isFull { await idle { $0.pendingBytes <= Self.bufferLimit } }
    }

    /// Waits until nothing is under way, and hands over what is left, for `finish` to carry.
    /// - Returns: the last event that the store has, and the events after it.
    func drain() async -> (previous: EventID, events: [(id: EventID, json: String)]) {
        await idle { !$0.isInFlight }
        return state.withLock { state in
            Self.assignIDs(&state)
            let stored = state.stored
            return (stored, state.sent.filter { $0.id > stored })
        }
    }

    /// The events after that one, for a store that has lost them.
    func events(after id: EventID) -> [(id: EventID, json: String)] {
        state.withLock { state in state.sent.filter { $0.id > id } }
    }

    /// Whether all events after that one are still kept.
    private func hasAll(after id: EventID) -> Bool {
        state.withLock { state in
            guard let first = state.sent.first else { return true }
            return first.id <= id.next
        }
    }

    // MARK: Sending

    private static func join(_ content: JobEvent.Content, to state: inout State) {
        switch (state.pending.last, content) {
        case (.chunk(let before)?, .chunk(let text)):
            state.pending[state.pending.count - 1] = .chunk(before + text)
            state.pendingBytes += text.utf8.count
        case (.reasoning(let before)?, .reasoning(let text)):
            state.pending[state.pending.count - 1] = .reasoning(before + text)
            state.pendingBytes += text.utf8.count
        case (.progress(let before)?, .progress(let now)) where before.phase == now.phase:
            state.pending[state.pending.count - 1] = content
        case (_, .chunk(let text)), (_, .reasoning(let text)):
            state.pending.append(content)
            state.pendingBytes += text.utf8.count
        default: state.pending.append(content)
        }
    }

    private static func assignIDs(_ state: inout State) {
        for content in state.pending {
            let event = JobEvent(id: state.last.next, previous: state.last, content: content)
            state.sent.append((event.id, event.json))
            state.last = event.id
        }
        state.pending.removeAll(keepingCapacity: true)
        state.pendingBytes = 0
    }

    private func takeBatch(_ state: inout State) -> EventBatch? {
        guard !state.isInFlight, !state.isFenced, !state.pending.isEmpty || state.last != state.stored else {
            return nil
        }
        Self.assignIDs(&state)
        state.isInFlight = true
        let stored = state.stored
        // The newest are at the end: no need to look through all that was ever sent.
        let unsent = state.sent.reversed().prefix { $0.id > stored }.reversed()
        return EventBatch(id: id, owner: owner, previous: stored, events: Array(unsent))
    }

    private func send(_ batch: EventBatch) {
        store.append(batch) { [self] result in received(result, for: batch) }
    }

    private func received(_ result: Result<AppendReply, StoreError>, for batch: EventBatch) {
        switch result {
        case .success(.ok(let isCancelWanted)):
            if isCancelWanted { running.abort(.cancelled) }
            proceed { state in
                state.stored = batch.events.last?.id ?? state.stored
                // Half at a time, so that it costs nothing on the whole.
                if state.sent.count > Self.keptLimit * 2 {
                    state.sent.removeFirst(state.sent.count - Self.keptLimit)
                }
                state.failingSince = nil
                state.backoff.reset()
            }
        case .success(.behind(let last)):
            guard hasAll(after: last) else {
                running.abort(.storeLost("Redis has lost more of the log than is kept"))
                return proceed { $0.isFenced = true }
            }
            proceed { $0.stored = last }
        case .success(.fenced):
            running.abort(.fenced)
            proceed { $0.isFenced = true }
        case .failure(let error): failed(error)
        }
    }

    /// Sends what has gathered, or wakes those who wait for that.
    private func proceed(_ change: (inout State) -> Void) {
        let (batch, waiters) = state.withLock { state in
            change(&state)
            state.isInFlight = false
            let batch = takeBatch(&state)
            defer { state.waiters = [] }
            return (batch, state.waiters)
        }
        if let batch { send(batch) }
        for waiter in waiters { waiter.resume() }
    }

    private func failed(_ error: StoreError) {
        let now = scheduler.now
        let (pause, isOver) = state.withLock { state in
            let since = state.failingSince ?? now
            state.failingSince = since
            return (state.backoff.next(on: scheduler), now - since > Self.patience)
        }
        guard !isOver, error.isRetryable else {
            running.abort(.storeLost(error.message))
            proceed { $0.isFenced = true }
            return
        }
        // A task of its own: nobody awaits an append, and the store's thread must not sleep.
        scheduler.start { [self] in
            do { try await scheduler.sleep(for: pause) } catch {}  // Never cancelled: nobody holds this task.
            proceed { _ in }
        }
    }

    private func idle(until isDone: (State) -> Bool) async {
        var isIdle = false
        while !isIdle {
            await withCheckedContinuation { continuation in
                isIdle = state.withLock { state in
                    if isDone(state) || (state.isFenced && !state.isInFlight) { return true }
                    state.waiters.append(continuation)
                    return false
                }
                if isIdle { continuation.resume() }
            }
        }
    }
}
