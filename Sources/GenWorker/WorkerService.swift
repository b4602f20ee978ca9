import GenShared

/// The worker: its backends, its pools, its connections, from start to drain.
final class WorkerService: Sendable {
    private let configuration: WorkerConfiguration
    private let id: String
    private let registry = JobRegistry()
    private let suspects = SuspectGate()
    private let connection: RedisConnection
    private let subscriber: RedisSubscriber
    private let store: RedisJobStore
    private let publisher: AMQPPublisher
    private let http: HTTPClient
    private let readiness: Readiness

    init(configuration: WorkerConfiguration) {
        self.configuration = configuration
        let host = HostIdentity.current
        id = host.workerID
        let name = "genworker:\(id)"
        connection = RedisConnection(url: configuration.servers.redis, name: name, scripts: RedisScript.all)
        subscriber = RedisSubscriber(url: configuration.servers.redis, name: "\(name):control")
        store = RedisJobStore(connection: connection)
        publisher = AMQPPublisher(url: configuration.servers.amqp, name: "\(name):publish")
        http = HTTPClient()
        readiness = Readiness(workerID: id, pools: configuration.pools.map(\.name))
    }

    func run() async -> ExitCode {
        let signals = StopSignals()
        let backends: [String: any GenerationBackend]
        do { backends = try await startBackends(signals) } catch {
            if error is CancellationError { return .done }
            // One line, and the end: a worker that cannot serve must not take jobs from those that can.
            Terminal.writeError("genworker: \(error)")
            return .failed
        }
        let pools = configuration.pools.map { makePool($0, backends) }
        await store.startRenewing()
        // Not on the Redis thread: a Redis that hangs would make the jobs' own timers late just then.
        let timers = Task { [registry] in
            while !Task.isCancelled {
                registry.checkTimers(at: .now)
                do { try await Task.sleep(for: .milliseconds(250)) } catch { return }
            }
        }
        defer { timers.cancel() }
        let control = subscriber.subscribe(JobKeys.control) { [registry] signal in
            if case .message(let text) = signal, text.hasPrefix("cancel "), let id = JobID(String(text.dropFirst(7))) {
                registry.cancel(id)
            }
        }
        let presence = WorkerPresence(
            id: id, connection: connection, registry: registry, readiness: readiness, pools: configuration.pools,
            backends: backends)
        await presence.start()
        let isInOrder = await serve(pools, signals)
        control.cancel()
        if isInOrder { await presence.end() }
        await stop(backends)
        guard isInOrder else {
            Log.info("stopped", ["worker": .string(id)])
            return .done
        }
        await publisher.close()
        await subscriber.close()
        await connection.close()
        await http.close()
        Log.info("stopped", ["worker": .string(id)])
        return .done
    }

    /// All backends side by side; the first that cannot serve ends the worker, a signal ends the wait.
    private func startBackends(_ signals: StopSignals) async throws -> [String: any GenerationBackend] {
        var backends: [String: any GenerationBackend] = [:]
        for (name, settings) in configuration.backends {
            backends[name] = try BackendFactory.make(name, settings, http: http)
        }
        let used = backends.filter { name, _ in configuration.pools.contains { $0.backends.contains(name) } }
        do {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for backend in used.values {
                    group.addTask {
                        Log.info("backend_starting", ["backend": .string(backend.name)])
                        try await backend.start { _ in }
                        Log.info(
                            "backend_ready",
                            ["backend": .string(backend.name), "model": backend.model.map(JSONValue.string) ?? .null])
                    }
                }
                // A signal during a long load ends the wait; the children are stopped below.
                group.addTask { if await signals.next() { throw CancellationError() } }
                for _ in used { try await group.next() }
                group.cancelAll()
            }
        } catch {
            for backend in used.values { await backend.stop() }
            throw error
        }
        return used
    }

    private func makePool(
        _ pool: WorkerConfiguration.Pool, _ backends: [String: any GenerationBackend]
    ) -> PoolRunner {
        let serving = pool.backends.compactMap { backends[$0] }
        // Never more in flight than the backend has slots.
        let slots = min(pool.slots, serving.map(\.capacity).min() ?? pool.slots)
        if slots < pool.slots {
            Log.warning(
                "slots_reduced",
                [
                    "pool": .string(pool.name), "configured": .integer(Int64(pool.slots)),
                    "slots": .integer(Int64(slots)),
                ])
        }
        let services = ExecutionServices(
            store: store, router: AMQPRouter(publisher: publisher), backends: serving,
            templates: configuration.templates, limits: configuration.limits, timers: configuration.timers,
            workerID: id, pool: pool.name, kinds: Set(pool.kinds), suspects: suspects)
        return PoolRunner(
            name: pool.name, slots: slots, batchMinSlots: pool.batchMinSlots, services: services, lookUp: store,
            registry: registry, readiness: readiness)
    }

    /// How long backends may take to end; their programs are killed with this process in any case.
    private static let backendLimit: Duration = .seconds(2)

    private func stop(_ backends: [String: any GenerationBackend]) async {
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        // Not a group, which would wait for a program that does not end.
        let stopping = Task {
            await withTaskGroup(of: Void.self) { group in
                for backend in backends.values { group.addTask { await backend.stop() } }
            }
            end.yield()
        }
        let timer = Task {
            do { try await Task.sleep(for: Self.backendLimit) } catch { return }
            end.yield()
        }
        for await _ in ends { break }
        stopping.cancel()
        timer.cancel()
    }

    /// How long jobs may take to be handed back once they were stopped.
    private static let handBackLimit: Duration = .seconds(3)

    /// Consumes until a signal comes, then drains.
    /// - Returns: whether everything was handed back; otherwise a server is away, and good-byes would hang as well.
    private func serve(_ pools: [PoolRunner], _ signals: StopSignals) async -> Bool {
        let connector = AMQPConsumerConnector(url: configuration.servers.amqp, name: "genworker:\(id)")
        let dropped = DroppedConsumer(
            store: store, executions: store, router: AMQPRouter(publisher: publisher), limits: configuration.limits)
        let link = ConsumerLink(connector: connector, pools: pools, dropped: dropped, readiness: readiness)
        let (ends, end) = AsyncStream.makeStream(of: Bool.self)
        let consuming = Task { await link.run() }
        // Not a group: where servers are away, what still hangs on them is left behind with the process.
        let working = Task {
            await withTaskGroup(of: Void.self) { group in
                for pool in pools { group.addTask { await pool.run() } }
            }
            // The pools have ended: the connection is closed in good order.
            consuming.cancel()
            await consuming.value
            end.yield(true)
        }
        let draining = Task {
            await drain(pools, signals)
            end.yield(false)
        }
        var isInOrder = false
        for await value in ends {
            isInOrder = value
            break
        }
        draining.cancel()
        working.cancel()
        return isInOrder
    }

    private func drain(_ pools: [PoolRunner], _ signals: StopSignals) async {
        guard await signals.next() else { return }
        Log.info("draining", ["worker": .string(id), "running": .integer(Int64(registry.ids.count))])
        for pool in pools { pool.post(.drain) }
        // The end of the drain time, or a second signal, whichever comes first.
        await withTaskGroup(of: Void.self) { group in
            group.addTask { _ = await signals.next() }
            group.addTask { [configuration] in
                do { try await Task.sleep(for: configuration.drain) } catch {}
            }
            await group.next()
            group.cancelAll()
        }
        guard !Task.isCancelled else { return }
        for pool in pools { pool.post(.abort) }
        // Servers that are away are not waited for: a lease that is not given back runs out by itself.
        do { try await Task.sleep(for: Self.handBackLimit) } catch { return }
        Log.warning("gave_up", ["worker": .string(id), "running": .integer(Int64(registry.ids.count))])
    }
}
