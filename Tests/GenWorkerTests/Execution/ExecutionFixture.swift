import GenShared
import GenTestSupport
import Synchronization
import Testing

@testable import GenWorker

/// A backend that does what a test says, step by step.
final class ScriptedBackend: GenerationBackend {
    enum Step: Sendable {
        case event(GenerationEvent)
        case fail(JobFailure)
        /// Says nothing until the task is cancelled.
        case hang
    }

    let name = "scripted"
    let kinds: Set<JobKind> = [.slogan, .rewrite, .reply]
    let model: String? = nil
    let capacity = 4
    private let steps: [Step]
    private let settled = Mutex(0)
    /// Told when the stream begins to hang.
    let onHang: AsyncStream<Void>
    private let hang: AsyncStream<Void>.Continuation

    init(_ steps: [Step]) {
        self.steps = steps
        (onHang, hang) = AsyncStream.makeStream()
    }

    /// How many streams were settled.
    var settledCount: Int { settled.withLock { $0 } }

    func start(progress: @escaping @Sendable (Progress) -> Void) async throws {}
    func probe() async throws -> String { "" }
    func stop() async {}

    func generate(_ request: GenerationRequest) -> any GenerationStream {
        Stream(steps: steps, hang: hang) { [self] in settled.withLock { $0 += 1 } }
    }

    private final class Stream: GenerationStream {
        private let steps: Mutex<[Step]>
        private let hang: AsyncStream<Void>.Continuation
        private let onSettle: @Sendable () -> Void

        init(steps: [Step], hang: AsyncStream<Void>.Continuation, onSettle: @escaping @Sendable () -> Void) {
            self.steps = Mutex(steps)
            self.hang = hang
            self.onSettle = onSettle
        }

        var partialUsage: Usage? { Usage(promptTokens: 1, completionTokens: 2, isEstimated: true) }

        func next() async throws -> GenerationEvent? {
            try Task.checkCancellation()
            let step = steps.withLock { $0.isEmpty ? nil : $0.removeFirst() }
            switch step {
            case .event(let event): return event
            case .fail(let failure): throw failure
            case .hang:
                hang.yield()
                try await Task.sleep(for: .seconds(600))
                return nil
            case nil: return nil
            }
        }

        func settle() async { onSettle() }
    }
}

/// Remembers where messages were sent.
final class RecordingRouter: MessageRouter {
    private struct State {
        var retries: [Duration] = []
        var buried: [String] = []
        var deliveries: [JobDelivery] = []
        var confirms: Bool
    }

    private let state: Mutex<State>
    private let before: (@Sendable () -> Void)?

    /// - Parameter before: happens before each answer.
    init(confirms: Bool = true, before: (@Sendable () -> Void)? = nil) {
        state = Mutex(State(confirms: confirms))
        self.before = before
    }

    var retries: [Duration] { state.withLock { $0.retries } }
    var buried: [String] { state.withLock { $0.buried } }
    /// The messages of both, in order.
    var deliveries: [JobDelivery] { state.withLock { $0.deliveries } }
    /// Whether RabbitMQ takes a copy, from now on.
    func confirm(_ confirms: Bool) { state.withLock { $0.confirms = confirms } }

    func retry(_ delivery: JobDelivery, after delay: Duration) async -> Bool {
        before?()
        return state.withLock { state in
            state.retries.append(delay)
            state.deliveries.append(delivery)
            return state.confirms
        }
    }

    func bury(_ delivery: JobDelivery, reason: String, detail: String) async -> Bool {
        before?()
        return state.withLock { state in
            state.buried.append(reason)
            state.deliveries.append(delivery)
            return state.confirms
        }
    }
}

/// One execution with everything around it in memory.
struct ExecutionFixture {
    let store: MemoryExecutionStore
    let backend: ScriptedBackend
    let router: RecordingRouter
    let running: RunningJob
    let job: Job
    private let services: ExecutionServices

    init(
        _ steps: [ScriptedBackend.Step], kind: JobKind = .reply, store: MemoryExecutionStore = MemoryExecutionStore(),
        confirms: Bool = true, outputLimit: Int = 1 << 20, suspects: SuspectGate = SuspectGate()
    ) {
        self.store = store
        backend = ScriptedBackend(steps)
        router = RecordingRouter(confirms: confirms)
        job = Job(id: JobID(atMilliseconds: 1), kind: kind, input: JobInput(text: "hello"))
        running = RunningJob(id: job.id)
        var limits = JobLimits()
        limits.outputBytes = outputLimit
        services = ExecutionServices(
            store: store, router: router, backends: [backend], templates: PromptTemplate.defaults, limits: limits,
            timers: ExecutionTimers(), workerID: "w", pool: "text", suspects: suspects)
    }

    /// Runs it as a pool does; `whenHanging` is called when the backend has gone silent.
    func run(whenHanging: (@Sendable () -> Void)? = nil) async -> Disposition {
        let (dispositions, disposition) = AsyncStream.makeStream(of: Disposition.self)
        let execution = JobExecution(
            services: services, running: running, onClaim: { _ in }, onConcluded: { disposition.yield($0) },
            delivery: JobDelivery(pool: "text", lane: .interactive, body: job.body))
        let task = Task { await execution.run(job) }
        running.attach(task)
        if let whenHanging {
            Task {
                for await _ in backend.onHang { whenHanging() }
            }
        }
        await task.value
        disposition.finish()
        var all: [Disposition] = []
        for await told in dispositions { all.append(told) }
        // Told exactly once, whatever happened.
        #expect(all.count == 1)
        return all.first ?? .requeue
    }
}
