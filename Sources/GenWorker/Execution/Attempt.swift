import GenShared

/// Reads a generation to its end and writes what it says.
struct Attempt {
    enum Outcome {
        case completed(FinishReason, Usage?, tokensPerSecond: Double?)
        case failed(JobFailure)
        case aborted(AbortReason)
    }

    let job: Job
    let writer: EventWriter
    let running: RunningJob
    let timers: ExecutionTimers
    var outputLimit = JobLimits().outputBytes

    private(set) var result = ""
    private var reasoningBytes = 0
    private(set) var firstTextAt: ContinuousClock.Instant?
    private let scheduler: any Scheduler
    private let startedAt: ContinuousClock.Instant
    private var filter: OutputFilter

    init(
        job: Job, writer: EventWriter, running: RunningJob, timers: ExecutionTimers,
        scheduler: any Scheduler = SystemScheduler()
    ) {
        self.scheduler = scheduler
        startedAt = scheduler.now
        self.job = job
        self.writer = writer
        self.running = running
        self.timers = timers
        filter = OutputFilter(for: job)
    }

    mutating func generate(_ stream: any GenerationStream) async -> Outcome {
        running.expectContent(within: timers.firstEvent)
        do {
            while let event = try await stream.next() {
                running.expectContent(within: timers.gap)
                if let outcome = await take(event, stream) { return outcome }
            }
            return .failed(JobFailure(.badReply, "the backend ended its answer without an end mark", isRetryable: true))
        } catch {
            if let reason = running.reason { return .aborted(reason) }
            if let failure = error as? JobFailure { return .failed(failure) }
            return .failed(JobFailure(.internal, "\(error)", isRetryable: true))
        }
    }

    private mutating func take(_ event: GenerationEvent, _ stream: any GenerationStream) async -> Outcome? {
        switch event {
        case .text(let piece):
            await show(filter.feed(piece))
            guard result.utf8.count <= outputLimit else { return .aborted(.outputTooLarge(outputLimit)) }
            // A slogan is complete with its line: the rest would be thrown away, so the backend stops now.
            guard filter.isEnded else { return nil }
            return .completed(.stop, stream.partialUsage, tokensPerSecond: nil)
        case .reasoning(let piece):
            // Reasoning is kept and stored like the answer, and bounded with it.
            reasoningBytes += piece.utf8.count
            guard reasoningBytes <= outputLimit else { return .aborted(.outputTooLarge(outputLimit)) }
            await writer.write(.reasoning(piece))
        case .progress(let progress):
            await writer.write(.progress(progress))
        case .finished(let reason, let usage, let speed):
            await show(filter.finish())
            return .completed(reason, usage ?? stream.partialUsage, tokensPerSecond: speed)
        }
        return nil
    }

    private mutating func show(_ text: String) async {
        guard !text.isEmpty else { return }
        if firstTextAt == nil { firstTextAt = scheduler.now }
        result += text
        await writer.write(.chunk(text))
    }

    /// The attempt's times; tokens a second are the backend's figure, or ours from the first text on.
    func stats(queuedMilliseconds: Int, usage: Usage?, tokensPerSecond: Double?) -> Stats {
        let now = scheduler.now
        var speed = tokensPerSecond
        if speed == nil, let usage, let firstTextAt, usage.completionTokens > 1 {
            let seconds = (now - firstTextAt) / .seconds(1)
            if seconds > 0 { speed = Double(usage.completionTokens - 1) / seconds }
        }
        return Stats(
            queueMilliseconds: queuedMilliseconds,
            firstTokenMilliseconds: firstTextAt.map { ($0 - startedAt).milliseconds },
            totalMilliseconds: (now - startedAt).milliseconds,
            tokensPerSecond: speed.map { ($0 * 100).rounded() / 100 })
    }
}
