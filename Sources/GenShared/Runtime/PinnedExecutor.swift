import CLinux
import Glibc
import Synchronization

/// A serial executor with a thread of its own, whose loop also waits for the descriptors of a C library.
///
/// One actor owns one C handle and runs here, so its calls may block without starving Swift's pool, and calls that
/// queue up while the thread is busy are taken together: they form the next pipeline batch by themselves.
///
/// Lifetime: the actor holds the executor, the thread holds only the shared core. The thread therefore ends after the
/// last actor is gone, never before, since a job enqueued on an ended thread would hang its caller for ever.
package final class PinnedExecutor: SerialExecutor {
    private let core: Core

    /// Starts the thread.
    /// - Parameter name: shown by `ps` and `top`; Linux keeps 15 bytes of it.
    package init(name: String) {
        core = Core()
        let core = core
        // A thread of the pool must never block, so this one is made by hand; it ends with `core.stop`.
        startThread(name: name) { core.run() }
        core.attach(self)
    }

    deinit { core.stop() }

    /// Makes the thread look at that source in each turn of its loop.
    package func poll(_ source: any PollSource) {
        core.setSource(source)
    }

    /// Makes the loop turn: its sources look at what was posted to them.
    ///
    /// Safe from any thread, costs no system call while the thread is awake.
    package func wake() { core.wake() }

    package func enqueue(_ job: consuming ExecutorJob) {
        core.enqueue(UnownedJob(job))
    }

    package func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    package func checkIsolated() {
        precondition(core.isCurrentThread, "called from outside the executor's own thread")
    }

    package func isIsolatingCurrentContext() -> Bool? { core.isCurrentThread }
}

/// What the thread and the executor share; it outlives both.
///
/// `@unchecked`: `thread` is written once before any other use, everything else is guarded by the mutex or atomic.
private final class Core: @unchecked Sendable {
    private struct State {
        var jobs: [UnownedJob] = []
        weak var source: (any PollSource)?
        weak var executor: PinnedExecutor?
        var isStopped = false
    }

    private let state = Mutex(State())
    private let isAsleep = Atomic(false)
    private let wakeDescriptor: Int32 = {
        let descriptor = clinux_eventfd()
        if descriptor < 0 { ProcessLimit.end("no descriptor for an event: \(String(cString: strerror(errno)))") }
        return descriptor
    }()
    private let threadIdentity = Atomic<UInt>(0)

    deinit { close(wakeDescriptor) }

    var isCurrentThread: Bool { threadIdentity.load(ordering: .relaxed) == UInt(pthread_self()) }

    func attach(_ executor: PinnedExecutor) { state.withLock { $0.executor = executor } }

    func setSource(_ source: any PollSource) {
        state.withLock { $0.source = source }
        wake()
    }

    func stop() {
        state.withLock { $0.isStopped = true }
        wake()
    }

    func enqueue(_ job: UnownedJob) {
        state.withLock { $0.jobs.append(job) }
        wake()
    }

    func wake() {
        // Only the waker that finds the thread asleep pays for the write.
        guard isAsleep.exchange(false, ordering: .sequentiallyConsistent) else { return }
        var one: UInt64 = 1
        _ = write(wakeDescriptor, &one, 8)  // Fails only if the counter is full: then the thread wakes anyway.
    }

    func run() {
        threadIdentity.store(UInt(pthread_self()), ordering: .relaxed)
        var jobs: [UnownedJob] = []
        while runJobs(&jobs) { attend() }
    }

    /// Holds the executor no longer than its jobs run: asleep, the thread would keep it alive.
    /// - Returns: false once the executor is gone.
    private func runJobs(_ jobs: inout [UnownedJob]) -> Bool {
        let (executor, isStopped) = state.withLock { state in
            swap(&jobs, &state.jobs)
            return (state.executor, state.isStopped)
        }
        if isStopped && jobs.isEmpty { return false }
        if let executor {
            for job in jobs { job.runSynchronously(on: executor.asUnownedSerialExecutor()) }
        }
        jobs.removeAll(keepingCapacity: true)
        return true
    }

    /// Holds the source for one look and one sleep, so that one that nobody else holds ends between two turns.
    private func attend() {
        let source = state.withLock { $0.source }
        source?.service()
        sleep(source)
    }

    /// Waits for the source's descriptor, its deadline, or a wake-up.
    private func sleep(_ source: (any PollSource)?) {
        isAsleep.store(true, ordering: .sequentiallyConsistent)
        // Whoever posted before the store saw a thread awake and did not write: look again.
        let mustStay = state.withLock { !$0.jobs.isEmpty || $0.isStopped } || source?.hasWork == true
        if !mustStay {
            if let source {
                source.wait(wake: wakeDescriptor)
            } else {
                var descriptor = pollfd(fd: wakeDescriptor, events: Int16(POLLIN), revents: 0)
                _ = Glibc.poll(&descriptor, 1, -1)
            }
        }
        // Whoever finds the flag cleared has written; whoever did not may leave the counter as it is.
        if !isAsleep.exchange(false, ordering: .sequentiallyConsistent) {
            var counter: UInt64 = 0
            _ = read(wakeDescriptor, &counter, 8)  // Nothing to read means that the write is still to come.
        }
    }
}
