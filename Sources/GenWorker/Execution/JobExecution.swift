import GenShared

/// One delivery from its claim to its end.
///
/// Order of effects: decode, claim, run, append, finish, tell `gen:done`; the caller acknowledges last. A crash
/// between two steps repeats the later ones, which are all harmless to repeat.
struct JobExecution: Sendable {
    let services: ExecutionServices
    let running: RunningJob
    /// Told once the job is claimed: whether an interactive job may take its slot.
    let onClaim: @Sendable (_ isPreemptable: Bool) -> Void
    /// Told what is to be done with the delivery, as soon as that is known; the slot may be held a little longer.
    let onConcluded: @Sendable (Disposition) -> Void
    let delivery: JobDelivery

    /// Preemptions that a batch job suffers before it is left alone.
    static let preemptionLimit = 3

    /// Runs the job; returns when its slot is free.
    func run(_ job: Job) async {
        // A job that was not claimed has no slot at the backend: its end is told here.
        if let disposition = await begin(job) { onConcluded(disposition) }
    }

    /// - Returns: what is to be done with the delivery, or `nil` where `onConcluded` was told.
    private func begin(_ job: Job) async -> Disposition? {
        // Unguessable is not needed, unique is: a random token names this attempt's right to write.
        var randomness = SchedulerRandomness(services.scheduler)
        let owner = JobID(atMilliseconds: services.scheduler.timestamp.milliseconds, using: &randomness).rawValue
        guard services.kinds.contains(job.kind),
            let backend = services.backends.first(where: { $0.kinds.contains(job.kind) })
        else {
            return await reject(job, owner)
        }
        var request = ClaimRequest(job: job, body: delivery.body, owner: owner, startedFields: startedFields(backend))
        request.formerOwner = services.unreturned.owner(of: job.id)
        do {
            let reply = try await claim(request)
            guard reply == .suspect else { return await follow(reply, job, owner, backend) }
            guard services.suspects.enter() else { return await park(Self.suspectWait) }
            defer { services.suspects.leave() }
            request.mayBeSuspect = true
            return await follow(try await claim(request), job, owner, backend)
        } catch let error as StoreError where error.isSpoiltRecord {
            return await bury(spoilt: error)
        } catch { return .requeueAndPause("\(error)") }
    }

    /// How long a suspect job waits while another runs.
    private static let suspectWait: Duration = .seconds(2)

    /// - Returns: what is to be done with the delivery, or `nil` where `onConcluded` was told.
    private func follow(
        _ reply: ClaimReply, _ job: Job, _ owner: String, _ backend: any GenerationBackend
    ) async -> Disposition? {
        // However it stands: that lease is over.
        services.unreturned.remove(job.id)
        switch reply {
        case .claimed(let claim):
            await execute(job, claim, owner, backend)
            return nil
        case .terminal(let state), .ended(let state): return await announce(job, state)
        case .busy(let left), .wait(let left): return await park(left)
        case .suspect: return await park(Self.suspectWait)
        }
    }

    /// Claims; an answer that was lost is asked for again by the same owner, who is told what was given: a token that
    /// is thrown away would leave a lease behind that counts as a crash.
    private func claim(_ request: ClaimRequest) async throws -> ClaimReply {
        var mayHaveRun = false
        return try await StorePatience(scheduler: services.scheduler).answer(
            within: .seconds(5),
            isWorthRepeating: { error in
                mayHaveRun = mayHaveRun || !error.isCertainlyUndone
                return mayHaveRun
            }
        ) {
            try await services.store.claim(request)
        }
    }

    /// A job whose keys are not ours to write can be neither run nor ended; its message must not come back for ever.
    private func bury(spoilt error: StoreError) async -> Disposition {
        Log.error("record_spoilt", ["job": .string(running.id.rawValue), "reason": .string(error.message)])
        let code = JobFailure.Code.internal.rawValue
        let isSafe = await services.router.bury(delivery, reason: code, detail: error.message)
        return isSafe ? .acknowledge : .requeueAndPause("RabbitMQ takes no copy")
    }

    private func startedFields(_ backend: any GenerationBackend) -> String {
        var writer = JSONWriter()
        writer.member("worker", services.workerID)
        writer.member("backend", backend.name)
        writer.member("model", ifPresent: backend.model)
        return writer.text
    }

    private func park(_ delay: Duration) async -> Disposition {
        await services.router.retry(delivery, after: delay) ? .acknowledge : .requeueAndPause("RabbitMQ takes no copy")
    }

    /// Services that wait for many jobs hear of each end at least once: also when this is a redelivery.
    private func announce(_ job: Job, _ state: JobState) async -> Disposition {
        do {
            if state == .failed, !(try await buryFailed(job)) { return .requeueAndPause("RabbitMQ takes no copy") }
            try await services.store.announce(job.id, state: state, kind: job.kind.rawValue, tenant: job.tenant)
            return .acknowledge
        } catch { return .requeueAndPause("\(error)") }
    }

    /// Leaves a copy of a failed job's message in the dead queue, whoever ended it.
    ///
    /// That may have been the claim, where it was poison or exhausted, or a worker that may have gone away before it
    /// could do so itself. A second copy is harmless.
    private func buryFailed(_ job: Job) async throws -> Bool {
        guard case .failed(let failure, _)? = try await services.store.record(job.id)?.ending else { return true }
        return await services.router.bury(delivery, reason: failure.code.rawValue, detail: failure.message)
    }

    private func reject(_ job: Job, _ owner: String) async -> Disposition {
        let failure = JobFailure(
            .unsupported, "pool \"\(services.pool)\" does not serve \(job.kind.rawValue) jobs")
        do {
            var request = ClaimRequest(
                job: job, body: delivery.body, owner: owner, startedFields: "\"worker\":\"\(services.workerID)\"")
            // Nothing is run: a suspect job can do no harm here.
            request.mayBeSuspect = true
            let reply = try await claim(request)
            guard case .claimed(let claim) = reply else { return await announceUnlessOpen(job, reply) }
            // The copy for the dead queue may take longer to be confirmed than a lease lasts.
            services.store.keepLease(job.id, owner: owner) { _ in }
            defer { services.store.dropLease(job.id, owner: owner) }
            let attempt = AttemptEnding(
                execution: self, job: job, claim: claim, owner: owner,
                writer: EventWriter(
                    id: job.id, owner: owner, last: claim.last, store: services.store, running: running,
                    scheduler: services.scheduler))
            return await attempt.fail(failure, usage: nil)
        } catch { return .requeueAndPause("\(error)") }
    }

    private func announceUnlessOpen(_ job: Job, _ reply: ClaimReply) async -> Disposition {
        switch reply {
        case .terminal(let state), .ended(let state): await announce(job, state)
        case .busy(let left), .wait(let left): await park(left)
        case .claimed, .suspect: .requeue
        }
    }

    private func execute(
        _ job: Job, _ claim: Claim, _ owner: String, _ backend: any GenerationBackend
    ) async {
        onClaim(claim.preempted < Self.preemptionLimit)
        let running = running
        services.store.keepLease(job.id, owner: owner) { reply in
            switch reply {
            case .ok(isCancelWanted: true): running.abort(.cancelled)
            case .fenced: running.abort(.fenced)
            case .ok, .behind: break
            }
        }
        if claim.isCancelWanted { running.abort(.cancelled) }
        running.limitRun(to: .seconds(job.timeoutSeconds))
        let writer = EventWriter(
            id: job.id, owner: owner, last: claim.last, store: services.store, running: running,
            scheduler: services.scheduler)
        let ending = AttemptEnding(execution: self, job: job, claim: claim, owner: owner, writer: writer)
        let stream = backend.generate(request(for: job))
        var attempt = Attempt(
            job: job, writer: writer, running: running, timers: services.timers,
            scheduler: services.scheduler)
        attempt.outputLimit = services.limits.outputBytes
        let outcome = await attempt.generate(stream)
        running.stopTimers()
        let disposition = await ending.conclude(outcome, attempt, stream, queuedMilliseconds: claim.queuedMilliseconds)
        services.store.dropLease(job.id, owner: owner)
        // At once: the copy in a tier may be delivered before the backend has freed its slot.
        onConcluded(disposition)
        // The slot is given back only when the backend has freed its own. Not part of the cancelled task: it must
        // happen just then.
        await services.scheduler.start { await stream.settle() }.value
    }

    private func request(for job: Job) -> GenerationRequest {
        let template = services.templates[job.kind]
        var options = template.map { job.options.filled(from: $0.options) } ?? job.options
        options.maxTokens = options.maxTokens ?? services.limits.maxTokens
        return GenerationRequest(
            kind: job.kind,
            messages: template?.messages(for: job.input)
                ?? [ConversationMessage(role: .user, content: job.input.text)],
            options: options, schema: job.input.schema)
    }
}
