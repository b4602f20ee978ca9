import GenShared
import GenTestSupport
import Testing

@testable import GenWorker

/// What a claimed job asks of its backend, and what its pool is told.
@Suite("Job request", .timeLimit(.minutes(1)))
struct JobRequestTests {
    /// Answers everything with one word, and keeps what it was asked.
    private final class AskedBackend: GenerationBackend {
        let name: String
        let kinds: Set<JobKind>
        let model: String? = "m"
        let capacity = 1
        let answer: String
        let asked = Journal<GenerationRequest>()

        init(_ name: String, _ kinds: Set<JobKind>, answer: String = "yes") {
            self.name = name
            self.kinds = kinds
            self.answer = answer
        }

        func start(progress: @escaping @Sendable (Progress) -> Void) async throws {}
        func probe() async throws -> String { "" }
        func stop() async {}
        func generate(_ request: GenerationRequest) -> any GenerationStream {
            asked.append(request)
            return EchoBackend(name: name, settings: .init()).generate(
                GenerationRequest(
                    kind: request.kind, messages: [ConversationMessage(role: .user, content: answer)], options: .init())
            )
        }
    }

    private struct Run {
        var disposition: Disposition
        var claims: [Bool]
        var store: MemoryExecutionStore
        var router: RecordingRouter
    }

    private func run(
        _ job: Job, _ backends: [any GenerationBackend], store: MemoryExecutionStore = MemoryExecutionStore(),
        templates: [JobKind: PromptTemplate] = PromptTemplate.defaults
    ) async -> Run {
        let router = RecordingRouter()
        let claims = Journal<Bool>()
        let concluded = Journal<Disposition>()
        let execution = JobExecution(
            services: ExecutionServices(
                store: store, router: router, backends: backends, templates: templates, limits: JobLimits(),
                timers: ExecutionTimers(), workerID: "w", pool: "text"),
            running: RunningJob(id: job.id), onClaim: { claims.append($0) }, onConcluded: { concluded.append($0) },
            delivery: JobDelivery(pool: "text", lane: .batch, body: job.body))
        await execution.run(job)
        return Run(
            disposition: concluded.elements.first ?? .requeue, claims: claims.elements, store: store, router: router)
    }

    private func job(_ kind: JobKind = .slogan) -> Job {
        Job(id: JobID(atMilliseconds: 1), kind: kind, input: JobInput(text: "coffee"))
    }

    @Test("the job's options win over the template's, the template's over the limit")
    func options() async throws {
        let backend = AskedBackend("a", [.slogan, .image])
        var job = job()
        job.options.temperature = 0.1
        #expect(await run(job, [backend]).disposition == .acknowledge)
        #expect(await run(self.job(.image), [backend], templates: [:]).disposition == .acknowledge)
        let asked = backend.asked.elements
        #expect(asked[0].options.temperature == 0.1 && asked[0].options.maxTokens == 48)
        #expect(asked[0].messages.map(\.role) == [.system, .user])
        #expect(asked[1].options.maxTokens == JobLimits().maxTokens && asked[1].messages.map(\.content) == ["coffee"])
    }

    @Test("the first backend that serves the kind is asked")
    func order() async {
        let (images, first, second) = (
            AskedBackend("i", [.image]), AskedBackend("a", [.slogan]), AskedBackend("b", [.slogan])
        )
        _ = await run(job(), [images, first, second])
        #expect([images, first, second].map(\.asked.count) == [0, 1, 0])
    }

    @Test("a job may be pushed out until it has been three times")
    func preemptable() async {
        for (before, isPreemptable) in [(0, true), (2, true), (3, false), (4, false)] {
            let run = await run(job(), [AskedBackend("a", [.slogan])], store: MemoryExecutionStore(preempted: before))
            #expect(run.claims == [isPreemptable])
        }
    }

    @Test("a result for a schema is taken as it comes if it is JSON, and tried again if not")
    func schema() async {
        var job = job()
        job.input.schema = .object(["type": .string("object")])
        let good = await run(job, [AskedBackend("a", [.slogan], answer: " {\"a\": 1}\n")])
        #expect(good.store.jobState == .completed && good.store.text == " {\"a\": 1}\n")
        let bad = await run(job, [AskedBackend("a", [.slogan], answer: "Sure! {\"a\": 1}")])
        #expect(bad.store.jobState == .retrying && bad.router.retries == [.seconds(2)])
        guard case .retrying(_, let failure?, _)? = bad.store.log.last?.content else { return }
        #expect(failure.code == .invalidResult)
    }

    @Test("once the job has ended no lease is kept, and its end is told once")
    func lease() async {
        let run = await run(job(), [AskedBackend("a", [.slogan])])
        #expect(!run.store.hasLeases && run.store.announced == [.completed])
        guard case .completed(let completion)? = run.store.log.last?.content else {
            Issue.record("not completed")
            return
        }
        #expect(completion.result == "yes" && completion.stats.totalMilliseconds >= 0)
    }
}
