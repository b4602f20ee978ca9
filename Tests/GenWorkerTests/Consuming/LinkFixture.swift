import GenShared
import GenTestSupport

@testable import GenWorker

/// A worker's consuming side in virtual time: link, pools and everything around them in memory.
struct LinkFixture: Sendable {
    let scheduler: ManualScheduler
    let connector: FakeConnector
    let readiness: Readiness
    let pools: [PoolRunner]
    let store = MemoryExecutionStore()
    let submissions: MemorySubmissionStore
    let router = RecordingRouter()
    let backend: ScriptedBackend
    private let link: ConsumerLink

    init(
        _ scheduler: ManualScheduler, pools names: [String] = ["text"], slots: Int = 2,
        steps: [ScriptedBackend.Step] = [.hang], plan: @escaping @Sendable (Int) -> FakeConnector.Plan
    ) {
        self.scheduler = scheduler
        connector = FakeConnector(scheduler, plan)
        let readiness = Readiness(workerID: "w", pools: names)
        self.readiness = readiness
        let submissions = MemorySubmissionStore(scheduler: scheduler)
        self.submissions = submissions
        let backend = ScriptedBackend(steps)
        self.backend = backend
        let registry = JobRegistry()
        let (store, router) = (store, router)
        pools = names.map { name in
            PoolRunner(
                name: name, slots: slots, batchMinSlots: 0,
                services: ExecutionServices(
                    store: store, router: router, backends: [backend], templates: PromptTemplate.defaults,
                    limits: JobLimits(), timers: ExecutionTimers(), workerID: "w", pool: name, scheduler: scheduler),
                lookUp: submissions, registry: registry, readiness: readiness, scheduler: scheduler)
        }
        link = ConsumerLink(
            connector: connector, pools: pools,
            dropped: DroppedConsumer(
                store: submissions, executions: store, router: router, limits: JobLimits(), scheduler: scheduler),
            readiness: readiness, scheduler: scheduler)
    }

    /// Runs the link and its pools while the body runs, and ends them in good order.
    func run(_ body: @escaping @Sendable () async -> Void) async {
        let linked = scheduler.start { [link] in await link.run() }
        let running = pools.map { pool in scheduler.start { await pool.run() } }
        await body()
        for pool in pools {
            pool.post(.drain)
            pool.post(.abort)
        }
        for task in running { await task.value }
        linked.cancel()
        await linked.value
    }

    /// Lets that much time pass.
    func pass(_ duration: Duration) async { await scheduler.sleepUncancelled(for: duration) }

    /// A delivery of a job, as its lane's consumer gets it.
    func delivery(_ job: Job, tag: UInt64, pool: String = "text", lane: Lane = .interactive) -> AMQPDelivery {
        .of(job.body, id: job.id.rawValue, tag: tag, consumer: "\(pool).\(lane.rawValue)")
    }
}

extension AMQPDelivery {
    /// A delivery that came through a lane whose key is the consumer's tag, unless another is given.
    static func of(
        _ body: [UInt8], id: String?, tag: UInt64, consumer: String, key: String? = nil
    ) -> AMQPDelivery {
        AMQPDelivery(
            tag: tag, consumer: consumer, isRedelivered: false, exchange: "", routingKey: key ?? consumer,
            messageID: id, type: "reply", contentType: "application/json", contentEncoding: nil, traceParent: nil,
            body: body)
    }
}
