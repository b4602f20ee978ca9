import Dispatch
import GenShared
import Glibc
import Synchronization

/// The first Ctrl-C, as something to wait for; the second ends the process at once, as people expect.
final class InterruptSignal: Sendable {
    private struct State {
        var count = 0
        var waiter: CheckedContinuation<Bool, Never>?
        var isCancelled = false
    }

    private let state = Mutex(State())
    // Kept alive, since a source that is released no longer reports; written in init only, never read.
    nonisolated(unsafe) private var source: (any DispatchSourceSignal)?

    init() {
        // The default action would end the process before the source sees the signal.
        signal(SIGINT, SIG_IGN)
        let source = DispatchSource.makeSignalSource(signal: SIGINT, queue: DispatchQueue(label: "interrupt"))
        source.setEventHandler { [weak self] in self?.arrive() }
        source.resume()
        self.source = source
    }

    deinit { signal(SIGINT, SIG_DFL) }

    /// Waits for Ctrl-C; called once.
    /// - Returns: false when the task was cancelled first.
    func next() async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let known: Bool? = state.withLock { state in
                    if state.count > 0 { return true }
                    if state.isCancelled { return false }
                    state.waiter = continuation
                    return nil
                }
                if let known { continuation.resume(returning: known) }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.isCancelled = true
                defer { state.waiter = nil }
                return state.waiter
            }
            waiter?.resume(returning: false)
        }
    }

    private func arrive() {
        let waiter = state.withLock { state in
            state.count += 1
            if state.count > 1 { _exit(ExitCode.interrupted.rawValue) }
            defer { state.waiter = nil }
            return state.waiter
        }
        waiter?.resume(returning: true)
    }
}
