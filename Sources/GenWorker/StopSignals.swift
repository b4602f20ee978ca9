import Dispatch
import Glibc
import Synchronization

/// SIGTERM and SIGINT, one by one: the first asks for a drain, the second for an end at once; a third ends the
/// process where it stands.
final class StopSignals: Sendable {
    private struct State {
        var arrived = 0
        var taken = 0
        var waiters: [UInt64: CheckedContinuation<Bool, Never>] = [:]
        var nextWaiter: UInt64 = 0
        var cancelled: Set<UInt64> = []
    }

    private let state = Mutex(State())
    // Kept alive, since a source that is released no longer reports; written in init only, never read.
    nonisolated(unsafe) private var sources: [any DispatchSourceSignal] = []

    init() {
        let queue = DispatchQueue(label: "signals")
        for number in [SIGTERM, SIGINT] {
            // The default action would end the process before the source sees the signal.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: queue)
            source.setEventHandler { [self] in arrive() }
            source.resume()
            sources.append(source)
        }
    }

    /// Waits for the next signal.
    /// - Returns: false when the task was cancelled first.
    func next() async -> Bool {
        let number = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        return await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let known: Bool? = state.withLock { state in
                    if state.cancelled.remove(number) != nil { return false }
                    if state.taken < state.arrived {
                        state.taken += 1
                        return true
                    }
                    state.waiters[number] = continuation
                    return nil
                }
                if let known { continuation.resume(returning: known) }
            }
        } onCancel: {
            // May run before the waiter is registered: then it finds its number among the cancelled.
            let waiter = state.withLock { state in
                let waiter = state.waiters.removeValue(forKey: number)
                if waiter == nil { state.cancelled.insert(number) }
                return waiter
            }
            waiter?.resume(returning: false)
        }
    }

    private func arrive() {
        let waiter = state.withLock { state -> CheckedContinuation<Bool, Never>? in
            state.arrived += 1
            if state.arrived >= 3 { _exit(130) }
            guard let first = state.waiters.keys.min() else { return nil }
            state.taken += 1
            return state.waiters.removeValue(forKey: first)
        }
        waiter?.resume(returning: true)
    }
}
