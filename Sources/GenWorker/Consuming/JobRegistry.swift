import GenShared
import Synchronization

/// The jobs that run in this process, by id: for cancels by broadcast, and for the timers.
final class JobRegistry: Sendable {
    private let jobs = Mutex<[JobID: RunningJob]>([:])

    func add(_ job: RunningJob) { jobs.withLock { $0[job.id] = job } }

    func remove(_ job: RunningJob) {
        jobs.withLock { jobs in
            // A redelivered job may have a newer entry by now.
            if jobs[job.id] === job { jobs[job.id] = nil }
        }
    }

    func isRunning(_ id: JobID) -> Bool { jobs.withLock { $0[id] != nil } }

    /// Ids of what runs, for the worker's record.
    var ids: [JobID] { jobs.withLock { Array($0.keys) } }

    /// A broadcast asks for a job's end; one that does not run here is nobody's concern.
    func cancel(_ id: JobID) { jobs.withLock { $0[id] }?.abort(.cancelled) }

    /// Stops what has run out of time.
    func checkTimers(at now: ContinuousClock.Instant) {
        for job in jobs.withLock({ Array($0.values) }) { job.check(now) }
    }
}
