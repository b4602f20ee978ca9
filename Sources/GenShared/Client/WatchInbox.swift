import Synchronization

/// Where a watcher's signals lie until it takes them: filled from the subscriber's thread, bounded, with a deadline
/// after which silence itself is a signal.
final class WatchInbox: Sendable {
    enum Signal: Sendable {
        case channel(ChannelSignal)
        case silence
    }

    private struct State {
        var signals: [Signal] = []
        var deadline: ContinuousClock.Instant?
        var waiter: CheckedContinuation<Void, Never>?
        var isCancelled = false
    }

    /// Beyond this the oldest are dropped: the log has them.
    private static let limit = 1024
    private let state = Mutex(State())

    func post(_ signal: Signal) {
        let waiter = state.withLock { state in
            if state.signals.count >= Self.limit {
                state.signals.removeFirst(Self.limit / 2)
            }
            state.signals.append(signal)
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume()
    }

    /// Called by a timer: posts `silence` once the deadline has passed.
    func tick(_ now: ContinuousClock.Instant) {
        let isDue = state.withLock { state in
            guard let deadline = state.deadline, deadline <= now else { return false }
            state.deadline = nil
            return true
        }
        if isDue { post(.silence) }
    }

    /// Waits for signals, at most until the deadline; empty when the task was cancelled.
    func take(deadline: ContinuousClock.Instant) async -> [Signal] {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let hasSome = state.withLock { state in
                    guard state.signals.isEmpty, !state.isCancelled else { return true }
                    state.deadline = deadline
                    state.waiter = continuation
                    return false
                }
                if hasSome { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.isCancelled = true
                defer { state.waiter = nil }
                return state.waiter
            }
            waiter?.resume()
        }
        return state.withLock { state in
            defer {
                state.signals.removeAll(keepingCapacity: true)
                state.deadline = nil
            }
            return state.signals
        }
    }
}
