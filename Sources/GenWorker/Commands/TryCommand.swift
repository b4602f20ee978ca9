import GenShared

/// `genworker try`: one job in this process, without any server but the backend.
enum TryCommand {
    static let specification = CommandSpecification(
        "try", arguments: "KIND TEXT", argumentCount: 2...2,
        summary: "Runs one job in this process, without RabbitMQ and Redis: does my backend work?",
        options: [
            .init("config", "FILE", "JSON5 configuration (else GEN_CONFIG, then the usual places)")
        ] + JobArguments.options,
        examples: [
            "GEN_MODEL=/models/small.gguf genworker try slogan \"coffee shop\"",
            "genworker try rewrite \"The bus was late again\" --style haiku",
        ])

    static func run(_ arguments: Arguments, environment: [String: String]) async -> ExitCode {
        let job: Job
        let configuration: WorkerConfiguration
        do {
            configuration = try WorkerConfiguration.load(file: arguments.value("config"), environment: environment)
            job = try JobArguments.job(
                arguments, kind: arguments.positionals[0], text: arguments.positionals[1], limits: configuration.limits)
        } catch {
            Terminal.writeError("genworker: \(TerminalText.line("\(error)"))")
            return .usage
        }
        for warning in configuration.warnings { Terminal.writeError("genworker: warning: \(warning)") }
        guard let pool = configuration.pools.first(where: { $0.kinds.contains(job.kind) }) else {
            Terminal.writeError("genworker: no pool of this configuration serves \(job.kind.rawValue) jobs")
            return .usage
        }
        Log.setLevel(.error)
        return await run(job, pool, configuration)
    }

    private static func run(
        _ job: Job, _ pool: WorkerConfiguration.Pool, _ configuration: WorkerConfiguration
    ) async -> ExitCode {
        let http = HTTPClient()
        do {
            var chosen: (any GenerationBackend)?
            for (name, settings) in configuration.backends where pool.backends.contains(name) && chosen == nil {
                let backend = try BackendFactory.make(name, settings, http: http)
                if backend.kinds.contains(job.kind) { chosen = backend }
            }
            guard let backend = chosen else {
                throw JobFailure(.unsupported, "no backend of pool \"\(pool.name)\" serves \(job.kind.rawValue) jobs")
            }
            let loading = LoadingLine()
            do {
                try await backend.start { _ in loading.show(backend.name) }
                loading.end()
                let code = try await stream(job, backend, configuration)
                await backend.stop()
                return code
            } catch {
                loading.end()
                await backend.stop()
                throw error
            }
        } catch {
            Terminal.writeError("genworker: \(TerminalText.line("\(error)"))")
            return .failed
        }
    }

    /// The same attempt as in a worker, with a store that shows instead of storing.
    private static func stream(
        _ job: Job, _ backend: any GenerationBackend, _ configuration: WorkerConfiguration
    ) async throws -> ExitCode {
        let store = PrintingStore()
        let running = RunningJob(id: job.id)
        running.limitRun(to: .seconds(job.timeoutSeconds))
        let services = ExecutionServices(
            store: store, router: NoRouter(), backends: [backend], templates: configuration.templates,
            limits: configuration.limits, timers: configuration.timers, workerID: "try", pool: job.pool)
        let delivery = JobDelivery(pool: job.pool, lane: job.lane, body: job.body)
        let execution = JobExecution(
            services: services, running: running, onClaim: { _ in }, onConcluded: { _ in },
            delivery: delivery)
        let signals = StopSignals()
        let task = Task { await execution.run(job) }
        running.attach(task)
        let stopping = Task { if await signals.next() { running.abort(.cancelled) } }
        let ticking = Task {
            while !Task.isCancelled {
                running.check(.now)
                do { try await Task.sleep(for: .milliseconds(250)) } catch { return }
            }
        }
        await task.value
        stopping.cancel()
        ticking.cancel()
        return store.exitCode
    }
}
