import Glibc
import Synchronization

/// Frees threads that hang in a C call on a socket whose peer has stalled.
///
/// librabbitmq writes without a timeout: a publish to a broker that no longer reads held its thread for good. Shutting
/// the socket down from another thread ends the call at once, with an error. The watchdog owns a duplicate of the
/// descriptor, so that it never touches a number that was closed and given to another file.
final class SocketWatchdog: Sendable {
    static let shared = SocketWatchdog()

    /// One socket under watch, for as long as its owner keeps this.
    final class Watch: Sendable {
        fileprivate let duplicate: Int32
        /// Milliseconds of the monotonic clock at which the current call began; 0 between calls.
        fileprivate let began = Atomic<Int64>(0)

        fileprivate init(_ descriptor: Int32) {
            duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        }

        deinit { if duplicate >= 0 { close(duplicate) } }

        /// A call that may hang begins.
        func begin() { began.store(SocketWatchdog.milliseconds(), ordering: .relaxed) }
        /// The call has returned.
        func end() { began.store(0, ordering: .relaxed) }
    }

    private struct WeakWatch {
        weak var watch: Watch?
    }

    private struct State {
        var watches: [WeakWatch] = []
        var isRunning = false
    }

    private let state = Mutex(State())
    /// Longer than any call that is bounded by the library's own timeouts (10 s).
    private static let limitMilliseconds: Int64 = 12_000

    func watch(_ descriptor: Int32) -> Watch {
        let watch = Watch(descriptor)
        let mustStart = state.withLock { state in
            state.watches.removeAll { $0.watch == nil }
            state.watches.append(WeakWatch(watch: watch))
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if mustStart { startThread(name: "watchdog") { [self] in run() } }
        return watch
    }

    private func run() {
        while true {
            usleep(1_000_000)
            let watches = state.withLock { $0.watches.compactMap(\.watch) }
            let now = Self.milliseconds()
            for watch in watches {
                let began = watch.began.load(ordering: .relaxed)
                if began != 0, now - began > Self.limitMilliseconds { shutdown(watch.duplicate, Int32(SHUT_RDWR)) }
            }
        }
    }

    private static func milliseconds() -> Int64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
    }
}
