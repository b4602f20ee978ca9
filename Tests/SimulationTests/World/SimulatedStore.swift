import GenShared
import GenTestSupport

/// A process' connection to the simulated Redis: the product's ports.
///
/// A call takes time both ways; its connection may break before the server has it, or after, so that nobody knows; it
/// may even be carried out long after the caller has given up.
///
/// `@unchecked`: see `Simulation`.
final class SimulatedStore: ExecutionStore, SubmissionStore, ChannelSource, @unchecked Sendable {
    private let redis: SimulatedRedis
    private let process: SimulatedProcess
    private let mishaps: Double
    /// Breaks a rule of the worker's side on purpose.
    var neverRenews = false
    private var leases: [JobID: (owner: String, listener: @Sendable (AppendReply) -> Void)] = [:]

    private var simulation: Simulation { process.simulation }

    /// - Parameter mishaps: the probability that a call's connection breaks.
    init(_ redis: SimulatedRedis, _ process: SimulatedProcess, mishaps: Double) {
        self.redis = redis
        self.process = process
        self.mishaps = mishaps
    }

    // MARK: A call

    private func post<Reply>(
        _ body: @escaping (inout StoreRules, Int64) -> Reply,
        completion: @escaping (Result<Reply, StoreError>) -> Void
    ) {
        guard process.isAlive else { return completion(.failure(Self.dead)) }
        guard redis.isReachable(from: process) else {
            simulation.after(simulation.duration(0...5), in: process) { completion(.failure(Self.away)) }
            return
        }
        let epoch = redis.epoch(of: process)
        let fate = simulation.chance(mishaps) ? Int.random(in: 0..<4, using: &simulation.random) : 4
        simulation.after(simulation.duration(0...4)) { [self] in
            guard redis.isReachable(from: process), redis.epoch(of: process) == epoch, fate != 0 else {
                return answer(.failure(Self.lost), completion)
            }
            if fate == 1 {
                // It lies in some buffer; the caller gives up after its timeout, the server carries it out later.
                simulation.after(simulation.duration(1000...15_000)) { [self] in
                    if redis.isUp { _ = redis.execute { body(&$0, self.simulation.milliseconds) } }
                }
                simulation.after(.seconds(5)) { [self] in answer(.failure(Self.lost), completion) }
                return
            }
            let reply = redis.execute { body(&$0, simulation.milliseconds) }
            simulation.trace("redis answers \(process.name): \(reply)".prefixed(200))
            simulation.after(simulation.duration(0...4)) { [self] in
                let isLost = fate == 2 || redis.epoch(of: process) != epoch || !redis.isReachable(from: process)
                answer(isLost ? .failure(Self.lost) : .success(reply), completion)
            }
        }
    }

    private func answer<Reply>(
        _ result: Result<Reply, StoreError>, _ completion: @escaping (Result<Reply, StoreError>) -> Void
    ) {
        process.perform(.call { completion(result) })
    }

    private func call<Reply: Sendable>(_ body: @escaping (inout StoreRules, Int64) -> Reply) async throws -> Reply {
        let result: Result<Reply, StoreError> = await withUnsafeContinuation { continuation in
            post(body) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    private static let dead = StoreError("the process is dead", isCertainlyUndone: true, isRetryable: false)
    private static let away = StoreError(
        "Redis is away", isCertainlyUndone: true, isRetryable: true, isUnreachable: true)
    private static let lost = StoreError("the connection was lost", isCertainlyUndone: false, isRetryable: true)

    // MARK: ExecutionStore

    func claim(_ request: ClaimRequest) async throws -> ClaimReply {
        try await call { [redis] rules, time in
            let entry = rules.entries[request.job.id]
            if entry?.state == .running, let former = request.formerOwner, entry?.fields["owner"] == former {
                redis.onTakenBack?(request.job.id)
            }
            return rules.claim(request, at: time)
        }
    }

    func append(_ batch: EventBatch, completion: @escaping @Sendable (Result<AppendReply, StoreError>) -> Void) {
        post({ $0.append(batch, at: $1) }, completion: completion)
    }

    func keepLease(_ id: JobID, owner: String, listener: @escaping @Sendable (AppendReply) -> Void) {
        leases[id] = (owner, listener)
    }

    func dropLease(_ id: JobID, owner: String) {
        if leases[id]?.owner == owner { leases[id] = nil }
    }

    /// What the worker's timer does every two seconds.
    func renewAll() {
        guard !neverRenews else { return }
        for (id, lease) in leases.sorted(by: { $0.key.rawValue < $1.key.rawValue }) {
            post({ $0.renew(id, owner: lease.owner, at: $1) }) { result in
                if case .success(let reply) = result { lease.listener(reply) }
            }
        }
    }

    func release(_ release: JobRelease) async throws -> ReleaseReply { try await call { $0.release(release, at: $1) } }
    func finish(_ ending: JobEnding) async throws -> FinishReply { try await call { $0.finish(ending, at: $1) } }
    func announce(_ id: JobID, state: JobState, kind: String, tenant: String) async throws {
        try await call { rules, _ in rules.announce(id, state: state) }
    }

    // MARK: SubmissionStore

    func create(_ job: Job, body: [UInt8]) async throws -> CreateReply {
        try await call { $0.create(job, body: body, at: $1) }
    }
    func cancel(_ id: JobID, by: String) async throws -> CancelReply {
        try await call { $0.cancel(id, by: by, at: $1) }
    }
    func reject(_ id: JobID, failure: JobFailure, rejected: RejectedMessage) async throws -> JobState? {
        try await call { $0.reject(id, failure: failure, rejected: rejected, at: $1) }
    }
    func message(_ id: JobID) async throws -> [UInt8]? { try await call { rules, _ in rules.message(id) } }
    func expire(_ id: JobID) async throws { try await call { $0.expire(id, at: $1) } }
    func record(_ id: JobID) async throws -> JobRecord? { try await call { rules, _ in rules.record(id) } }
    func events(_ id: JobID, from: EventID, limit: Int) async throws -> LogPage {
        try await call { rules, _ in rules.events(id, from: from, limit: limit) }
    }

    // MARK: ChannelSource

    func subscribe(
        _ channel: String, _ listener: @escaping @Sendable (ChannelSignal) -> Void
    ) -> ChannelSubscription {
        let subscription = redis.subscribe(process, channel, listener)
        return ChannelSubscription { [redis] in redis.unsubscribe(subscription) }
    }
}

extension String {
    fileprivate func prefixed(_ count: Int) -> String { String(prefix(count)) }
}
