import Foundation
package import GenShared
import Synchronization

extension FaultStage {
    /// A text that nobody else says, and that the worker's filter leaves alone.
    package static func text(_ number: Int, pieces: Int) -> String {
        let words = ["grüne", "Züge", "fahren", "日本", "über", "Brücken", "🚋", "ohne", "Halt"]
        var text = "Job \(number) says"
        // The echo's pieces have four scalars; a little more text than that many pieces need.
        while text.unicodeScalars.count < pieces * 4 { text += " " + words[(text.utf8.count + number) % words.count] }
        return text + " and ends"
    }

    /// A job of this test's pool.
    package func job(_ number: Int, pieces: Int = 10, lane: Lane = .interactive) -> Job {
        var options = GenerationOptions()
        options.maxTokens = 8000
        var job = Job(
            id: JobID(atMilliseconds: Timestamp.now.milliseconds), kind: .reply,
            input: JobInput(text: Self.text(number, pieces: pieces)), options: options)
        job.pool = pool
        job.lane = lane
        return job
    }

    /// Hands jobs in, all at once, and notes how each ended; watches each from the start.
    @discardableResult
    package func submit(
        _ count: Int, pieces: Int = 10, lane: Lane = .interactive, deadline: Duration = .seconds(30),
        through client: Client? = nil
    ) async throws -> [JobID] {
        let jobs = (0..<count).map { job($0, pieces: pieces, lane: lane) }
        await withTaskGroup(of: Void.self) { group in
            for job in jobs { group.addTask { await self.submit(job, deadline: deadline, through: client) } }
        }
        return jobs.map(\.id)
    }

    /// Hands one job in.
    @discardableResult
    package func submit(
        _ job: Job, deadline: Duration = .seconds(30), through client: Client? = nil
    ) async -> HistoryEntry.Submission {
        let submission: HistoryEntry.Submission
        do {
            try await (client ?? self.client).submit(job, deadline: deadline)
            submission = .accepted
        } catch {
            history.add(.note("\(job.id): \(error)"))
            print("\(name): job \(job.id) was not accepted: \(error)")
            if case .unknown = error { submission = .unknown } else { submission = .refused }
        }
        note(job, submission)
        if submission == .accepted { watch(job.id) }
        return submission
    }

    /// Notes a submission that was made in another way.
    package func note(_ job: Job, _ submission: HistoryEntry.Submission) {
        note(job.id, submission, expected: job.input.text)
    }

    /// Notes a submission, and what its backend must say; `nil` where that is not known.
    package func note(_ id: JobID, _ submission: HistoryEntry.Submission, expected: String?) {
        history.add(.submitted(job: id.rawValue, submission, expected: expected))
        state.withLock { if !$0.jobs.contains(id) { $0.jobs.append(id) } }
    }

    /// Watches a job from the start to its end, and notes what is seen.
    package func watch(_ id: JobID, from start: EventID = .origin, through client: Client? = nil) {
        let client = client ?? self.client
        state.withLock { state in
            state.watchers += 1
            let watcher = "watcher \(state.watchers)"
            state.watching.append(
                Task { [history] in
                    history.add(.viewed(await Self.view(id, from: start, watcher: watcher, through: client)))
                })
        }
    }

    /// Watches until the job's end, or until the task is cancelled.
    package static func view(
        _ id: JobID, from start: EventID = .origin, watcher: String, through client: Client
    ) async -> HistoryEntry.View {
        var view = HistoryEntry.View(watcher: watcher, job: id.rawValue, from: start, events: [], end: .ended)
        do {
            for try await item in client.watch(id, from: start) {
                switch item {
                case .event(let event): view.events.append(event.json)
                case .historyLost: view.events.append(nil)
                }
            }
        } catch WatchError.unknownJob { view.end = .unknownJob } catch { view.end = .stopped }
        return view
    }

    /// Waits until an event of the job fits.
    package func waitFor(
        _ id: JobID, within limit: Duration = .seconds(60), _ fits: @escaping @Sendable (JobEvent) -> Bool
    ) async throws {
        let found = try await withThrowingTaskGroup(of: Bool.self) { [client] group in
            group.addTask {
                for try await item in client.watch(id) {
                    if case .event(let event) = item, fits(event) { return true }
                }
                return false
            }
            group.addTask {
                try await Task.sleep(for: limit)
                return false
            }
            defer { group.cancelAll() }
            return try await group.next() ?? false
        }
        guard found else { throw FaultError("job \(id) did not come to what was waited for within \(limit)") }
    }

    /// Waits until a worker has begun the job and said something.
    package func waitForText(_ id: JobID, attempt: UInt64 = 1, within limit: Duration = .seconds(60)) async throws {
        try await waitFor(id, within: limit) { event in
            if case .chunk = event.content { event.id.attempt >= attempt } else { false }
        }
    }

    /// Waits for the job's end.
    package func waitForEnd(_ id: JobID, within limit: Duration = .seconds(60)) async throws {
        try await waitFor(id, within: limit, \.isTerminal)
    }

    /// Asks for a job's end.
    @discardableResult
    package func cancel(_ id: JobID) async throws -> CancelReply {
        let reply = try await client.cancel(id, by: "fault test")
        let word =
            switch reply {
            case .cancelled: "cancelled"
            case .flagged: "flagged"
            case .terminal(let state): "terminal \(state.rawValue)"
            case .unknown: "unknown"
            }
        history.add(.cancelled(job: id.rawValue, reply: word))
        return reply
    }

    /// The record of a job that must have one.
    package func record(_ id: JobID) async throws -> JobRecord {
        guard let record = try await client.record(id) else { throw FaultError("job \(id) has no record") }
        return record
    }
}
