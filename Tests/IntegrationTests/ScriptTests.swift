import GenShared
import GenTestSupport
import Testing

/// The contract of the scripts, on a real Redis.
@Suite("Scripts", .timeLimit(.minutes(1)))
struct ScriptTests {
    private let connection: RedisConnection
    private let store: RedisJobStore
    private let job: Job
    private let keys: JobKeys

    init() throws {
        ProcessSetup.run()
        connection = RedisConnection(url: try TestEnvironment.redisURL(), name: "script-test", scripts: RedisScript.all)
        store = RedisJobStore(connection: connection)
        var job = Job(
            id: JobID(atMilliseconds: Timestamp.now.milliseconds), kind: .reply, input: JobInput(text: "hello"))
        job.createdAt = .now
        self.job = job
        keys = JobKeys(job.id)
    }

    private let started = #""worker":"w","backend":"b""#

    @Test("create answers created once, then exists, and tells whether the body is the same")
    func create() async throws {
        #expect(try await store.create(job, body: job.body) == .created)
        #expect(try await store.create(job, body: job.body) == .exists(state: .queued, isSameBody: true))
        #expect(try await store.create(job, body: [0x7B]) == .exists(state: .queued, isSameBody: false))
        let record = try #require(await store.record(job.id))
        #expect(record.state == .queued && record.last == .queued && record.kind == .reply)
    }

    @Test("B14: claim raises the attempt, writes started, answers its owner again and others busy")
    func claim() async throws {
        _ = try await store.create(job, body: job.body)
        let claim = try await claimed("a")
        #expect(claim.attempt == 1 && claim.last == EventID(attempt: 1, sequence: 1) && claim.queuedMilliseconds >= 0)
        #expect(try await claimed("a").attempt == 1)
        guard
            case .busy(let left) = try await store.claim(
                ClaimRequest(job: job, body: job.body, owner: "b", startedFields: started))
        else {
            Issue.record("not busy")
            return
        }
        #expect(left > .zero && left <= .seconds(6))
        #expect(try #require(await store.record(job.id)).worker == "w")
        let event = try #require(try await log().first)
        #expect(event.id == claim.last && event.previous == .queued)
        #expect(event.content == .started(attempt: 1, worker: "w", backend: "b", model: nil, restarted: false))
    }

    @Test("a message without a record makes one from its body")
    func foreignMessage() async throws {
        _ = try await claimed("a")
        let record = try #require(await store.record(job.id))
        #expect(record.state == .running && record.kind == .reply && record.pool == "text")
        let message = try await connection.send(RedisCommand("HGET", keys.record, "message"))
        #expect(message == .bulk(job.body))
    }

    @Test("a claim whose members are broken writes nothing")
    func brokenMembers() async throws {
        _ = try await store.create(job, body: job.body)
        for members in [#""worker":"w","#, "x", #""worker":"w"}"#] {
            await #expect(throws: StoreError.self) {
                try await store.claim(
                    ClaimRequest(job: job, body: job.body, owner: "a", startedFields: members))
            }
        }
        #expect(try await log().isEmpty)
        let reply = try await store.claim(
            ClaimRequest(job: job, body: job.body, owner: "a", startedFields: #""worker":"w","model":null"#))
        guard case .claimed = reply else {
            Issue.record("not claimed: \(reply)")
            return
        }
    }

    @Test("append adds in order, repeats harmlessly, tells of a lost tail, and refuses a stranger")
    func append() async throws {
        let claim = try await claimed("a")
        let one = event(claim.last, .chunk("one"))
        let two = event(one.id, .chunk("two"))
        #expect(try await append("a", claim.last, [one]) == .ok(isCancelWanted: false))
        #expect(try await append("a", claim.last, [one]) == .ok(isCancelWanted: false))
        #expect(try await append("a", claim.last, [one, two]) == .ok(isCancelWanted: false))
        let three = event(two.id, .chunk("three"))
        let four = event(three.id, .chunk("four"))
        #expect(try await append("a", three.id, [four]) == .behind(two.id))
        #expect(try await append("b", two.id, [three]) == .fenced)
        #expect(try await append("a", two.id, [three, four]) == .ok(isCancelWanted: false))
        let texts = try await log().compactMap { event in
            if case .chunk(let text) = event.content { text } else { nil }
        }
        #expect(texts == ["one", "two", "three", "four"])
        _ = try await connection.send(RedisCommand("SET", keys.cancel, "x"))
        #expect(try await append("a", four.id, [event(four.id, .chunk("five"))]) == .ok(isCancelWanted: true))
    }

    @Test("finish ends once, is repeated harmlessly, and refuses a stranger")
    func finish() async throws {
        let claim = try await claimed("a")
        let chunk = event(claim.last, .chunk("all"))
        let completion = Completion(
            result: "all", finishReason: .stop, usage: Usage(promptTokens: 3, completionTokens: 1),
            stats: Stats(queueMilliseconds: 1, firstTokenMilliseconds: 2, totalMilliseconds: 3, tokensPerSecond: 4))
        var ending = JobEnding(
            id: job.id, owner: "b", previous: claim.last, events: [(chunk.id, chunk.json)],
            content: .completed(completion), usage: completion.usage)
        #expect(try await store.finish(ending) == .fenced)
        ending.owner = "a"
        #expect(try await store.finish(ending) == .ended(.completed))
        #expect(try await store.finish(ending) == .ended(.completed))
        let events = try await log()
        #expect(events.count == 3 && events.last?.content == .completed(completion))
        #expect(try #require(await store.record(job.id)).ending == .completed(completion))
        #expect(
            try await store.claim(
                ClaimRequest(job: job, body: job.body, owner: "c", startedFields: started)) == .terminal(.completed))
        for key in [keys.record, keys.events] {
            let left = try await connection.send(RedisCommand("PTTL", key)).integer ?? 0
            #expect(left > 0 && left <= 86_400_000)
        }
    }

    @Test("a cancel just before finish or release wins, with who asked, the latency and the usage")
    func cancelWins() async throws {
        let claim = try await claimed("a")
        #expect(try await store.cancel(job.id, by: "somebody \"else\"") == .flagged)
        let usage = Usage(promptTokens: 1, completionTokens: 2, isEstimated: true)
        let release = JobRelease(
            id: job.id, owner: "a", last: claim.last, counter: .failure, delay: .seconds(2),
            content: .retrying(reason: "failure", error: nil, delaySeconds: 2), usage: usage)
        #expect(try await store.release(release) == .ended(.cancelled))
        guard case .cancelled(let by, let latency, let partial)? = try await log().last?.content else {
            Issue.record("no cancelled event")
            return
        }
        #expect(by == "somebody \"else\"" && partial == usage)
        #expect(latency.map { (0...5000).contains($0) } ?? false)
        #expect(try await store.cancel(job.id, by: "x") == .terminal(.cancelled))
    }

    @Test("release counts what it is told to count, makes the next claim wait, and is repeated harmlessly")
    func release() async throws {
        var claim = try await claimed("a")
        func release(_ counter: JobRelease.Counter, _ delay: Duration) -> JobRelease {
            JobRelease(
                id: job.id, owner: "a", last: claim.last, counter: counter, delay: delay,
                content: .retrying(reason: "failure", error: nil, delaySeconds: 0))
        }
        #expect(try await store.release(release(.failure, .zero)) == .released(failures: 1))
        #expect(try await store.release(release(.failure, .zero)) == .released(failures: 1))
        claim = try await claimed("a")
        #expect(claim.attempt == 2 && claim.failures == 1)
        #expect(
            try await log().last?.content
                == .started(attempt: 2, worker: "w", backend: "b", model: nil, restarted: true))
        #expect(try await store.release(release(.preemption, .seconds(60))) == .released(failures: 1))
        guard
            case .wait(let left) = try await store.claim(
                ClaimRequest(job: job, body: job.body, owner: "b", startedFields: started))
        else {
            Issue.record("it does not wait")
            return
        }
        #expect(left > .seconds(50))
        #expect(try await store.cancel(job.id, by: "x") == .cancelled)
    }

    @Test("four failures exhaust a job, three lost workers make it poison")
    func limits() async throws {
        for round in 1...4 {
            let claim = try await claimed("a")
            #expect(claim.failures == round - 1)
            _ = try await store.release(
                JobRelease(
                    id: job.id, owner: "a", last: claim.last, counter: .failure, delay: .zero,
                    content: .retrying(reason: "failure", error: nil, delaySeconds: 0)))
        }
        #expect(
            try await store.claim(
                ClaimRequest(job: job, body: job.body, owner: "a", startedFields: started)) == .ended(.failed))
        let other = Job(id: JobID(atMilliseconds: 1), kind: .reply, input: JobInput(text: "x"))
        for owner in ["a", "b", "c"] {
            var request = ClaimRequest(job: other, body: other.body, owner: owner, startedFields: started)
            // After the first crash the job is suspect, and given only to those who may have such a job.
            if owner != "a" { #expect(try await store.claim(request) == .suspect) }
            request.mayBeSuspect = true
            guard case .claimed = try await store.claim(request) else {
                Issue.record("not claimed by \(owner)")
                return
            }
            _ = try await connection.send(RedisCommand("HSET", JobKeys(other.id).record, "lease_until", "1"))
        }
        #expect(
            try await store.claim(ClaimRequest(job: other, body: other.body, owner: "d", startedFields: started))
                == .ended(.failed))
        guard case .failed(let failure, _)? = try #require(await store.record(other.id)).ending else { return }
        #expect(failure.code == .poison)
    }

    @Test("B15: an expired job ends whoever sees it first, and only while it waits")
    func expire() async throws {
        var late = job
        late.expiresAt = Timestamp(milliseconds: Timestamp.now.milliseconds - 1)
        _ = try await store.create(late, body: late.body)
        try await store.expire(late.id)
        #expect(try #require(await store.record(late.id)).state == .expired)
        #expect(
            try await store.claim(ClaimRequest(job: late, body: late.body, owner: "a", startedFields: started))
                == .terminal(.expired))
    }

    @Test("a job that never ran is rejected, with or without a record")
    func reject() async throws {
        let failure = JobFailure(.rejected, "no queue takes it")
        let state = try await store.reject(
            job.id, failure: failure,
            rejected: RejectedMessage(body: job.body, kind: "reply", pool: "text", lane: .batch))
        #expect(state == .failed)
        let record = try #require(await store.record(job.id))
        #expect(record.state == .failed && record.ending == .failed(failure, partial: nil))
        #expect(record.kind == .reply && record.pool == "text" && record.lane == "batch")
    }

    @Test("scripts run after Redis has forgotten them, and after the connection was killed")
    func forgotten() async throws {
        _ = try await store.create(job, body: job.body)
        _ = try await connection.send(RedisCommand("SCRIPT", "FLUSH"))
        #expect(try await claimed("a").attempt == 1)
        let id = try #require(try await connection.send(RedisCommand("CLIENT", "ID")).integer)
        let other = RedisConnection(url: try TestEnvironment.redisURL(), name: "killer")
        _ = try await other.send(RedisCommand("CLIENT", "KILL", "ID", "\(id)"))
        await other.close()
        // The command that meets the loss may fail; the next one has a fresh connection.
        _ = try? await connection.send(RedisCommand("PING"))
        #expect(try await connection.send(RedisCommand("PING")) == .status("PONG"))
        #expect(try await claimed("a").attempt == 1)
    }

    @Test("10,000 commands of many tasks at once get each its own reply")
    func pipelining() async throws {
        try await withThrowingTaskGroup(of: Void.self) { group in
            for task in 0..<100 {
                group.addTask {
                    for number in 0..<100 {
                        let text = "\(task)-\(number)"
                        let reply = try await connection.send(RedisCommand("ECHO", text))
                        #expect(reply == .bulk(Array(text.utf8)))
                    }
                }
            }
            try await group.waitForAll()
        }
    }

    private func claimed(_ owner: String) async throws -> Claim {
        let reply = try await store.claim(
            ClaimRequest(job: job, body: job.body, owner: owner, startedFields: started))
        guard case .claimed(let claim) = reply else {
            Issue.record("not claimed: \(reply)")
            throw CancellationError()
        }
        return claim
    }

    private func event(_ previous: EventID, _ content: JobEvent.Content) -> JobEvent {
        JobEvent(id: previous.next, previous: previous, content: content)
    }

    private func append(_ owner: String, _ previous: EventID, _ events: [JobEvent]) async throws -> AppendReply {
        let batch = EventBatch(id: job.id, owner: owner, previous: previous, events: events.map { ($0.id, $0.json) })
        let result: Result<AppendReply, StoreError> = await withCheckedContinuation { continuation in
            store.append(batch) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    private func log() async throws -> [JobEvent] {
        try await store.events(job.id, from: .queued, limit: 100).lines.compactMap(JobEvent.init(json:))
    }
}
