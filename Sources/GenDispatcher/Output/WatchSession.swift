import GenShared
import Synchronization

/// Watches one job for a command: shows it, minds the clock, Ctrl-C, and whether anybody serves it at all.
struct WatchSession: Sendable {
    let client: Client
    let id: JobID
    let style: WatchStyle
    var start = EventID.origin
    var waitForJob: Duration = .zero
    /// How long to watch.
    var limit: Duration?
    var cancelsOnInterrupt = false
    /// The pool, where it is to be said that no worker serves it.
    var pool: String?
    var by = "gendispatcher"
    var closesClient = true

    private enum Outcome: Sendable {
        case ended(JobEvent.Content?)
        case outputClosed
        case interrupted
        case timedOut
    }

    /// Shows the job and returns its exit code.
    func run() async throws -> ExitCode { try await ending().code }

    /// Shows the job to its end.
    /// - Returns: the exit code, and how it ended, if it was seen.
    func ending() async throws -> (code: ExitCode, ending: JobEvent.Content?) {
        let interrupts = InterruptSignal()
        let outcome = try await withThrowingTaskGroup(of: Outcome?.self) { group in
            group.addTask { try await show() }
            group.addTask { await interrupts.next() ? .interrupted : nil }
            if let limit {
                group.addTask {
                    try await Task.sleep(for: limit)
                    return .timedOut
                }
            }
            if let pool, style != .silent { group.addTask { await warn(ifNobodyServes: pool) } }
            defer { group.cancelAll() }
            while let result = try await group.next() {
                if let result { return result }
            }
            return Outcome.ended(nil)
        }
        let result = try await conclude(outcome)
        if closesClient { await client.close() }
        return result
    }

    private func show() async throws -> Outcome {
        var renderer = WatchRenderer(style: style, isTerminal: Terminal.isInteractive, start: start)
        let troubles = TroubleNotice(isSilent: style == .silent)
        let watch = client.watch(id, from: start, waitForJob: waitForJob) { troubles.tell($0) }
        for try await item in watch {
            let output = renderer.render(item, id: id)
            if !output.text.isEmpty, !Terminal.write(output.text) { return .outputClosed }
            for note in output.notes { Terminal.writeError(note) }
            if case .event(let event) = item, event.isTerminal { return .ended(event.content) }
        }
        return .ended(nil)
    }

    private func conclude(_ outcome: Outcome) async throws -> (code: ExitCode, ending: JobEvent.Content?) {
        switch outcome {
        case .ended(let content):
            guard let content else {
                // Everything was seen before: the record tells how it ended.
                let record = try await client.record(id)
                return (record?.state.exitCode ?? .unknownJob, record?.ending)
            }
            return (content.terminalState?.exitCode ?? .failed, content)
        case .outputClosed:
            // Nobody reads any more, as with `| head -1`: the job runs on.
            return (.done, nil)
        case .timedOut:
            Terminal.writeError("gendispatcher: job \(id) has not ended yet; go on with: gendispatcher watch \(id)")
            return (.stillRunning, nil)
        case .interrupted:
            guard cancelsOnInterrupt else {
                Terminal.writeError(
                    "\ngendispatcher: job \(id) runs on; watch it with: gendispatcher watch \(id)\n"
                        + "or end it with: gendispatcher cancel \(id)")
                return (.interrupted, nil)
            }
            let outcome =
                switch try await client.cancel(id, by: by) {
                case .cancelled: "was cancelled"
                case .flagged: "is being cancelled: its worker was told"
                case .terminal(let state): "had ended before: \(state.rawValue)"
                case .unknown: "is not known any more"
                }
            Terminal.writeError("\ngendispatcher: job \(id) \(outcome)")
            return (.interrupted, nil)
        }
    }

    /// After 2 s without a live worker for the pool, says so once.
    private func warn(ifNobodyServes pool: String) async -> Outcome? {
        do {
            try await Task.sleep(for: .seconds(2))
            let record = try await client.record(id)
            guard record?.state == .queued, try await client.livePools().contains(pool) == false else { return nil }
            Terminal.writeError(
                "gendispatcher: no live worker serves pool \"\(pool)\"; the job waits. Start one: genworker run")
        } catch {
            // Cancelled, or Redis is away, which the watch itself reports.
        }
        return nil
    }
}

/// Says once in a while that the servers are away: the watch goes on by itself when they are back.
private final class TroubleNotice: Sendable {
    private let lastTold = Mutex<ContinuousClock.Instant?>(nil)
    private let isSilent: Bool

    init(isSilent: Bool) { self.isSilent = isSilent }

    func tell(_ reason: String) {
        let now = ContinuousClock.now
        let isNew = lastTold.withLock { last in
            if let last, now - last < .seconds(30) { return false }
            last = now
            return true
        }
        if isNew, !isSilent { Terminal.writeError("gendispatcher: waiting: \(TerminalText.line(reason))") }
    }
}
