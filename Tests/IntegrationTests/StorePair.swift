import GenShared
import GenTestSupport

/// One job in Redis and in the model, and random calls for both.
struct StorePair {
    enum Call {
        case create(sameBody: Bool)
        case claim(owner: String, mayBeSuspect: Bool, former: String?)
        case renew(owner: String)
        case append(owner: String, previous: EventID, count: Int)
        case release(owner: String, last: EventID, JobRelease.Counter, delay: Duration)
        case finish(owner: String, previous: EventID, count: Int, JobEvent.Content)
        case cancel
        case reject
        case expire
        /// From outside: the lease runs out, the wait is over, a failover takes the newest events back.
        case endLease
        case endWait
        case setBack(Int)
    }

    private var random: SeededGenerator
    private let connection: RedisConnection
    private let store: RedisJobStore
    private var model = StoreRules()
    private let job: Job
    private let keys: JobKeys

    init(seed: UInt64, connection: RedisConnection) {
        random = SeededGenerator(seed: seed)
        self.connection = connection
        store = RedisJobStore(connection: connection)
        var job = Job(
            id: JobID(atMilliseconds: Timestamp.now.milliseconds), kind: .reply, input: JobInput(text: "hello"))
        job.createdAt = .now
        // Some are past their time from the beginning, most have none.
        if seed % 7 == 0 { job.expiresAt = Timestamp(milliseconds: Timestamp.now.milliseconds - 1000) }
        self.job = job
        keys = JobKeys(job.id)
    }

    // MARK: Calls

    private var last: EventID { model.record(job.id)?.last ?? .queued }

    mutating func nextCall() -> Call {
        // Mostly the owner that holds the job, so that something happens.
        let holder = model.entries[job.id]?.fields["owner"].flatMap { $0.isEmpty ? nil : $0 }
        let owner = chance(0.8) ? holder ?? pick(["a", "b", "c"]) : pick(["a", "b", "c"])
        // Mostly the right event, else one before or after.
        let around = [last, last, last, last, last.next, EventID(attempt: last.attempt, sequence: 1), .queued]
        switch Int.random(in: 0..<30, using: &random) {
        case 0...2: return .create(sameBody: chance(0.7))
        case 3...10:
            return .claim(
                owner: owner, mayBeSuspect: chance(0.4), former: chance(0.1) ? pick(["a", "b", "c"]) : nil)
        case 11: return .renew(owner: owner)
        case 12...18: return .append(owner: owner, previous: pick(around), count: Int.random(in: 1...3, using: &random))
        case 19...21:
            let counter = pick([JobRelease.Counter.nothing, .failure, .preemption])
            return .release(owner: owner, last: pick(around), counter, delay: pick([.zero, .zero, .seconds(60)]))
        case 22:
            let content = pick([
                JobEvent.Content.failed(JobFailure(.timeout, "too \"late\""), partial: nil),
                .cancelled(by: nil, latencyMilliseconds: nil, partial: nil),
                .completed(
                    Completion(
                        result: "r\u{E9}\n", finishReason: .stop, usage: nil,
                        stats: Stats(
                            queueMilliseconds: 1, firstTokenMilliseconds: 2, totalMilliseconds: 3, tokensPerSecond: nil)
                    )),
            ])
            return .finish(owner: owner, previous: pick(around), count: Int.random(in: 0...2, using: &random), content)
        case 23: return chance(0.3) ? .cancel : .endLease
        case 24: return chance(0.2) ? .reject : .endWait
        case 25: return .expire
        case 26, 27: return .endLease
        case 28: return .endWait
        default: return .setBack(Int.random(in: 1...3, using: &random))
        }
    }

    private mutating func chance(_ probability: Double) -> Bool {
        Double.random(in: 0..<1, using: &random) < probability
    }

    private mutating func pick<Element>(_ elements: [Element]) -> Element {
        elements[Int.random(in: elements.indices, using: &random)]
    }

    // MARK: Both answers

    /// - Returns: what the model and what Redis answered, without what only the clock decides.
    mutating func perform(_ call: Call) async throws -> (model: String, redis: String) {
        let now = Timestamp.now.milliseconds
        switch call {
        case .create(let isSame):
            let body = isSame ? job.body : Array("{}".utf8)
            return ("\(model.create(job, body: body, at: now))", "\(try await store.create(job, body: body))")
        case .claim(let owner, let mayBeSuspect, let former):
            var request = ClaimRequest(
                job: job, body: job.body, owner: owner, startedFields: #""worker":"w","backend":"b","model":null"#)
            request.mayBeSuspect = mayBeSuspect
            request.formerOwner = former
            return (Self.text(model.claim(request, at: now)), Self.text(try await store.claim(request)))
        case .renew(let owner):
            return ("\(model.renew(job.id, owner: owner, at: now))", "\(try await renewInRedis(owner))")
        case .append(let owner, let previous, let count):
            let batch = EventBatch(
                id: job.id, owner: owner, previous: previous, events: events(after: previous, count))
            let reply: AppendReply = try await withCheckedThrowingContinuation { continuation in
                store.append(batch) { continuation.resume(with: $0) }
            }
            return ("\(model.append(batch, at: now))", "\(reply)")
        case .release(let owner, let last, let counter, let delay):
            let release = JobRelease(
                id: job.id, owner: owner, last: last, counter: counter, delay: delay,
                content: .retrying(reason: "failure", error: nil, delaySeconds: 2))
            return ("\(model.release(release, at: now))", "\(try await store.release(release))")
        case .finish(let owner, let previous, let count, let content):
            let ending = JobEnding(
                id: job.id, owner: owner, previous: previous, events: events(after: previous, count), content: content)
            return ("\(model.finish(ending, at: now))", "\(try await store.finish(ending))")
        default: return try await performFromOutside(call, now)
        }
    }

    private mutating func performFromOutside(_ call: Call, _ now: Int64) async throws -> (String, String) {
        switch call {
        case .cancel:
            return ("\(model.cancel(job.id, by: "me", at: now))", "\(try await store.cancel(job.id, by: "me"))")
        case .reject:
            let rejected = RejectedMessage(body: job.body, kind: "reply", pool: "text", lane: .batch)
            let failure = JobFailure(.rejected, "no")
            return (
                "\(String(describing: model.reject(job.id, failure: failure, rejected: rejected, at: now)))",
                "\(String(describing: try await store.reject(job.id, failure: failure, rejected: rejected)))"
            )
        case .expire:
            model.expire(job.id, at: now)
            try await store.expire(job.id)
        case .endLease: try await set("lease_until", "1", where: ["running"])
        case .endWait: try await set("not_before", "0", where: ["retrying"])
        case .setBack(let count): try await setBack(count)
        default: break
        }
        return ("", "")
    }

    private func events(after previous: EventID, _ count: Int) -> [(id: EventID, json: String)] {
        var last = previous
        return (0..<count).map { number in
            let event = JobEvent(id: last.next, previous: last, content: .chunk("t\(last) \(number)"))
            last = event.id
            return (event.id, event.json)
        }
    }

    /// As a lease keeper does, whose timer is not waited for.
    private func renewInRedis(_ owner: String) async throws -> AppendReply {
        guard let script = RedisScript.all.first(where: { $0.name == "renew" }) else { return .fenced }
        var command = RedisCommand(script: script, keys: [keys.record, keys.events, keys.cancel])
        command.append(keys.channel)
        command.append(owner)
        command.append(Int(StoreRules.leaseMilliseconds))
        let reply = try await connection.send(command)
        let words = reply.array ?? []
        return words.first?.string == "ok" ? .ok(isCancelWanted: words.last?.integer == 1) : .fenced
    }

    private mutating func set(_ name: String, _ value: String, where states: Set<String>) async throws {
        guard let state = model.entries[job.id]?.fields["state"], states.contains(state) else { return }
        model.mutate(job.id) { $0.fields[name] = value }
        _ = try await connection.send(RedisCommand("HSET", keys.record, name, value))
    }

    /// The newest events are gone, and the record knows nothing of them.
    private mutating func setBack(_ count: Int) async throws {
        guard let entry = model.entries[job.id], entry.state == .running, entry.log.count > count else { return }
        let kept = Array(entry.log.dropLast(count))
        guard let last = kept.last?.id, last.attempt == entry.last.attempt else { return }
        model.mutate(job.id) { entry in
            entry.log = kept
            entry.fields["last"] = last.description
        }
        _ = try await connection.send(RedisCommand("DEL", keys.events))
        for event in kept {
            _ = try await connection.send(RedisCommand("XADD", keys.events, event.id.description, "e", event.json))
        }
        _ = try await connection.send(RedisCommand("HSET", keys.record, "last", last.description))
    }

    // MARK: Both states

    /// - Returns: record and log of each, without what only the clock decides.
    func states() async throws -> (model: String, redis: String) {
        let entry = model.entries[job.id]
        let reply = try await connection.send(RedisCommand("HGETALL", keys.record)).array ?? []
        var fields: [String: String] = [:]
        for index in stride(from: 0, to: reply.count - 1, by: 2) {
            fields[reply[index].string ?? ""] = reply[index + 1].string ?? ""
        }
        let log = try await store.events(job.id, from: .origin, limit: 1000).lines
        return (Self.text(entry?.fields ?? [:], entry?.log.map(\.json) ?? []), Self.text(fields, log))
    }

    private static let clocks: Set<String> = ["queued_at", "started_at", "finished_at", "cancel_latency_ms"]

    private static func text(_ fields: [String: String], _ log: [String]) -> String {
        // A field that is not there says the same as one that is empty or nought.
        let shown = fields.filter { !clocks.contains($0.key) && $0.value != "" && $0.value != "0" }.map { name, value in
            // Whether a time lies ahead is what counts.
            let isTime = name == "lease_until" || name == "not_before"
            return "\(name)=\(isTime ? (Int64(value) ?? 0) > Timestamp.now.milliseconds ? "ahead" : "past" : value)"
        }
        let lines = log.map { line in
            line.replacing(/"latency_ms":\d+/, with: "\"latency_ms\":0")
        }
        return (shown.sorted() + lines).joined(separator: "\n")
    }

    private static func text(_ reply: ClaimReply) -> String {
        switch reply {
        case .busy(let left): "busy(\(left > .zero))"
        case .wait(let left): "wait(\(left > .zero))"
        case .claimed(var claim):
            { () -> String in
                claim.queuedMilliseconds = 0
                return "claimed(\(claim))"
            }()
        default: "\(reply)"
        }
    }
}
