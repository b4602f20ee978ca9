import GenShared
import Synchronization

/// One attempt under way, as those see it who may have to stop it.
final class RunningJob: Sendable {
    private struct State {
        var reason: AbortReason?
        var task: Task<Void, Never>?
        var deadline: ContinuousClock.Instant?
        var silenceDeadline: ContinuousClock.Instant?
    }

    let id: JobID
    private let scheduler: any Scheduler
    private let state = Mutex(State())

    init(id: JobID, scheduler: any Scheduler = SystemScheduler()) {
        self.id = id
        self.scheduler = scheduler
    }

    /// Stops the attempt; the first reason counts.
    func abort(_ reason: AbortReason) {
        let task: Task<Void, Never>? = state.withLock { state in
            guard state.reason == nil else { return nil }
            state.reason = reason
            return state.task
        }
        task?.cancel()
    }

    /// Why the attempt was stopped, if it was.
    var reason: AbortReason? { state.withLock { $0.reason } }

    /// The task that `abort` cancels; one that was stopped before is cancelled at once.
    func attach(_ task: Task<Void, Never>) {
        let isAborted = state.withLock { state in
            state.task = task
            return state.reason != nil
        }
        if isAborted { task.cancel() }
    }

    /// From here on `check` stops the attempt when it runs beyond the limit.
    func limitRun(to limit: Duration) {
        let deadline = scheduler.now + limit
        state.withLock { $0.deadline = deadline }
    }

    /// Something was heard from the backend: the next must come within the limit.
    func expectContent(within limit: Duration) {
        let deadline = scheduler.now + limit
        state.withLock { $0.silenceDeadline = deadline }
    }

    /// The backend is done: no timer counts any more.
    func stopTimers() {
        state.withLock { state in
            state.deadline = nil
            state.silenceDeadline = nil
        }
    }

    /// Called about four times a second: stops what has run out of time.
    func check(_ now: ContinuousClock.Instant) {
        let (isOver, isSilent) = state.withLock { state in
            (state.deadline.map { $0 <= now } ?? false, state.silenceDeadline.map { $0 <= now } ?? false)
        }
        if isOver { abort(.timedOut("the attempt took longer than its timeout", isRetryable: false)) }
        if isSilent { abort(.timedOut("the backend said nothing for too long", isRetryable: true)) }
    }
}
