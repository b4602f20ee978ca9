import GenShared

@testable import GenWorker

/// A worker made of the product's own parts, on the ports of a simulated process.
struct SimulatedWorker {
    let process: SimulatedProcess
    let pools: [PoolRunner]
    private let consuming: Task<Void, Never>

    init(_ process: SimulatedProcess, _ world: World, slots: Int) {
        self.process = process
        let scheduler = SimulatedScheduler(process: process)
        let faults = world.options.workerFaults
        let store = SimulatedStore(world.redis, process, mishaps: world.options.mishaps)
        store.neverRenews = faults.contains(.neverRenews)
        let publisher = SimulatedPublisher(process, world.broker, mishaps: world.options.mishaps)
        var router: any MessageRouter = AMQPRouter(publisher: publisher)
        if faults.contains(.trustsUnconfirmedCopies) { router = TrustingRouter(router: router) }
        let registry = JobRegistry()
        let readiness = Readiness(workerID: process.name, pools: ["text"])
        let services = ExecutionServices(
            store: store, router: router, backends: [SimulatedBackend(process, world)],
            templates: [:], limits: JobLimits(),
            timers: ExecutionTimers(firstEvent: .seconds(20), gap: .seconds(15)), workerID: process.name,
            pool: "text", scheduler: scheduler)
        pools = [
            PoolRunner(
                name: "text", slots: slots, batchMinSlots: 0, services: services, lookUp: store, registry: registry,
                readiness: readiness, scheduler: scheduler)
        ]
        let dropped = DroppedConsumer(
            store: store, executions: store, router: router, limits: JobLimits(), scheduler: scheduler)
        let link = ConsumerLink(
            connector: SimulatedConnector(process, world.broker, faults: faults), pools: pools, dropped: dropped,
            readiness: readiness, scheduler: scheduler)
        consuming = scheduler.start { await link.run() }
        for pool in pools { scheduler.start { await pool.run() } }
        // What the thread of the Redis connection does in a real worker.
        repeats(every: .seconds(1), in: process) { registry.checkTimers(at: scheduler.now) }
        repeats(every: .seconds(2), in: process) { store.renewAll() }
        let control = store.subscribe(JobKeys.control) { signal in
            if case .message(let text) = signal, let id = JobID(String(text.dropFirst("cancel ".count))) {
                registry.cancel(id)
            }
        }
        let (consuming, pools) = (consuming, pools)
        process.onDeath.append {
            control.cancel()
            consuming.cancel()
            for pool in pools {
                pool.post(.drain)
                pool.post(.abort)
            }
        }
    }

    /// As SIGTERM does, with that drain time.
    func drain(within limit: Duration) {
        let pools = pools
        let consuming = consuming
        for pool in pools { pool.post(.drain) }
        process.simulation.after(limit, in: process) { for pool in pools { pool.post(.abort) } }
        process.simulation.after(limit + .seconds(5), in: process) { consuming.cancel() }
    }
}

/// Calls a body again and again while the process lives.
func repeats(every interval: Duration, in process: SimulatedProcess, _ body: @escaping () -> Void) {
    process.simulation.after(interval, in: process) {
        guard process.isAlive else { return }
        body()
        repeats(every: interval, in: process, body)
    }
}

/// The fault of taking a copy for safe that was not confirmed.
private struct TrustingRouter: MessageRouter {
    let router: any MessageRouter

    func retry(_ delivery: JobDelivery, after delay: Duration) async -> Bool {
        _ = await router.retry(delivery, after: delay)
        return true
    }

    func bury(_ delivery: JobDelivery, reason: String, detail: String) async -> Bool {
        _ = await router.bury(delivery, reason: reason, detail: detail)
        return true
    }
}
