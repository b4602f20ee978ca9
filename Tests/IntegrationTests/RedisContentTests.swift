import GenShared
import GenTestSupport
import Testing

/// What stands in Redis is anybody's: keys of another type, fields that are no numbers, entries and messages of strangers.
@Suite("Redis content", .timeLimit(.minutes(3)))
struct RedisContentTests {
    private let connection: RedisConnection
    private let store: RedisJobStore
    private let job: Job
    private let keys: JobKeys

    init() throws {
        ProcessSetup.run()
        connection = RedisConnection(
            url: try TestEnvironment.redisURL(), name: "content-test", scripts: RedisScript.all)
        store = RedisJobStore(connection: connection)
        job = Job(id: JobID(atMilliseconds: Timestamp.now.milliseconds), kind: .reply, input: JobInput(text: "hello"))
        keys = JobKeys(job.id)
    }

    private func redis(_ words: String...) async throws { try await redis(words) }

    private func redis(_ words: [String]) async throws {
        var command = RedisCommand(words[0])
        for word in words.dropFirst() { command.append(word) }
        let reply = try await connection.send(command)
        if case .error(let text) = reply { Issue.record("\(words): \(text)") }
    }

    private func claim(_ owner: String) async throws -> ClaimReply {
        try await store.claim(
            ClaimRequest(job: job, body: job.body, owner: owner, startedFields: #""worker":"w""#))
    }

    /// Every call that a program makes for a job; each either answers or throws an error of the store's own.
    private func callAll() async -> [String] {
        let failure = JobFailure(.rejected, "no")
        let ending = JobEnding(
            id: job.id, owner: "a", previous: .queued, events: [], content: .failed(failure, partial: nil), usage: nil)
        let release = JobRelease(
            id: job.id, owner: "a", last: .queued, counter: .failure, delay: .zero,
            content: .retrying(reason: "failure", error: nil, delaySeconds: 0))
        let rejected = RejectedMessage(body: job.body, kind: "reply", pool: "text", lane: .batch)
        let calls: [() async throws -> Void] = [
            { _ = try await store.create(job, body: job.body) }, { _ = try await claim("a") },
            { _ = try await append() }, { _ = try await store.release(release) },
            { _ = try await store.finish(ending) },
            { _ = try await store.cancel(job.id, by: "me") }, { try await store.expire(job.id) },
            { _ = try await store.reject(job.id, failure: failure, rejected: rejected) },
            { _ = try await store.record(job.id) }, { _ = try await store.message(job.id) },
            { _ = try await store.events(job.id, from: .queued, limit: 10) },
        ]
        var errors: [String] = []
        for call in calls {
            do { try await call() } catch let error as StoreError { errors.append(error.message) } catch {
                Issue.record("not an error of the store: \(error)")
            }
        }
        return errors
    }

    private func append() async throws -> AppendReply {
        let event = JobEvent(id: EventID.queued.next, previous: .queued, content: .chunk("x"))
        let batch = EventBatch(id: job.id, owner: "a", previous: .queued, events: [(event.id, event.json)])
        let result: Result<AppendReply, StoreError> = await withCheckedContinuation { continuation in
            store.append(batch) { continuation.resume(returning: $0) }
        }
        return try result.get()
    }

    @Test(
        "B48: a key of another type is an error that says WRONGTYPE, and nothing breaks",
        arguments: ["record", "log", "flag"])
    func wrongTypes(_ which: String) async throws {
        let key = ["record": keys.record, "log": keys.events, "flag": keys.cancel][which] ?? ""
        for make in [["SET", key, "x"], ["RPUSH", key, "x"], ["SADD", key, "x"], ["HSET", key, "f", "x"]] {
            if which == "record", make[0] == "HSET" { continue }
            _ = try await connection.send(RedisCommand("DEL", keys.record, keys.events, keys.cancel))
            try await redis(make)
            for error in await callAll() {
                #expect(error.contains("WRONGTYPE") || error.contains("wrong kind"), "\(error)")
            }
            // The connection is as good as before.
            #expect(try await connection.send(RedisCommand("PING")) == .status("PONG"))
        }
    }

    @Test(
        "B48: a record's field that is no number is an answer or an error, never a crash",
        arguments: [
            "", "x", "nan", "inf", "-inf", "-1", "1e999", "0x10", "9223372036854775807", "18446744073709551616", "1.5",
            "\u{1B}", "9-9",
        ])
    func noNumbers(_ value: String) async throws {
        for field in [
            "attempt", "failures", "crashes", "preempted", "lease_until", "not_before", "expires_at", "queued_at",
            "last",
            "state", "owner",
        ] {
            for state in ["queued", "running", "retrying"] {
                _ = try await connection.send(RedisCommand("DEL", keys.record, keys.events, keys.cancel))
                try await redis("HSET", keys.record, "state", state, "owner", "a", "last", "0-1", "lease_until", "0")
                try await redis("HSET", keys.record, field, value)
                _ = try await store.record(job.id)
                _ = await callAll()
                _ = try await store.record(job.id)
            }
        }
        #expect(try await connection.send(RedisCommand("PING")) == .status("PONG"))
    }

    @Test("B48: entries of strangers in the log are passed over by a watcher, with and without fields of ours")
    func strangersInTheLog() async throws {
        _ = try await store.create(job, body: job.body)
        guard case .claimed(let claim) = try await claim("a") else {
            Issue.record("not claimed")
            return
        }
        for entry in [
            ["x", "y"], ["e", "garbage"], ["e", "{}"], ["e", "\u{1B}\0"], ["f", "e"], ["e", #"{"id":"x","prev":1}"#],
        ] {
            try await redis("XADD", keys.events, "1-*", entry[0], entry[1])
        }
        let lines = try await store.events(job.id, from: .queued, limit: 100).lines
        #expect(lines.compactMap(JobEvent.init(json:)).map(\.id) == [claim.last])
    }

    @Test("B49: garbage on the channel, events of other jobs and forged ones lose and double nothing")
    func garbageOnTheChannel() async throws {
        try await withWorker(backend: #"type: "echo", chunk_size: 2, delay: "10ms", times: 20"#) { worker in
            let client = try TestEnvironment.client()
            var job = job
            job.pool = worker.pool
            try await client.submit(job)
            let id = job.id
            let noise = Task {
                let payloads = [
                    "", "garbage", "{}", "\0\u{1B}", "[]", #"{"id":"1-5"}"#, #"{"id":"9-9","prev":"x","type":"chunk"}"#,
                    #"{"id":"99-99","prev":"0-1","type":"completed","result":"forged"}"#,
                    #"{"id":"1-3","prev":"1-2","type":"chunk","text":7}"#, String(repeating: "x", count: 100_000),
                    #"{"id":"7-7","prev":"7-6","type":"chunk","text":"of another job"}"#,
                ]
                while !Task.isCancelled {
                    for payload in payloads {
                        _ = try await connection.send(RedisCommand("PUBLISH", keys.channel, payload))
                        _ = try await connection.send(RedisCommand("PUBLISH", JobKeys.control, payload))
                    }
                }
            }
            var text = ""
            var result: String?
            for try await item in client.watch(id) {
                guard case .event(let event) = item else { continue }
                if case .chunk(let piece) = event.content { text += piece }
                if case .completed(let completion) = event.content { result = completion.result }
            }
            noise.cancel()
            _ = await noise.result
            #expect(result != nil && text == result && text.contains("hello"))
            await client.close()
        }
    }

    @Test(
        "B48: a job whose keys are unusable fails as internal, and its pool never pauses",
        arguments: [
            ["SET", "", "not ours"], ["HSET", "", "state", "queued", "attempt", "nan"], ["SET", ":events", "not ours"],
        ])
    func poolGoesOn(_ words: [String]) async throws {
        try await withWorker { worker in
            var words = words
            words[1] = words[1].isEmpty ? keys.record : keys.events
            try await redis(words)
            let publisher = AMQPPublisher(url: try TestEnvironment.amqpURL(), name: "content-test")
            _ = try await publisher.publish(
                AMQPMessage(
                    exchange: Topology.jobs, routingKey: "\(worker.pool).interactive", body: job.body,
                    messageID: job.id.rawValue, type: "reply"), within: .seconds(20))
            let shown = try await dispatcher(
                "submit", "reply", "still here", "--wait", "--wait-for", "10s", "--pool", worker.pool)
            #expect(shown.status == 0, "\(shown.errors)")
            #expect(!worker.program.errors.contains("consuming_paused"))
            await publisher.close()
        }
    }

    @Test(
        "B48: a stranger's entry with a higher id in the log does not keep a job from its end",
        arguments: [true, false])
    func higherEntry(_ isBefore: Bool) async throws {
        try await withWorker(backend: #"type: "echo", delay: "100ms", chunk_size: 8"#) { worker in
            let id = TestEnvironment.uniqueName("higher")
            let events = JobKeys(try #require(JobID(id))).events
            if isBefore { try await redis("XADD", events, "99-1", "x", "y") }
            let submitted = try await dispatcher(
                "submit", "reply", "hello there", "--id", id, "--pool", worker.pool)
            #expect(submitted.status == 0)
            if !isBefore {
                // In the middle of the text.
                let client = try TestEnvironment.client()
                for try await item in client.watch(try #require(JobID(id))) {
                    if case .event(let event) = item, case .chunk = event.content { break }
                }
                await client.close()
                try await redis("XADD", events, "99-1", "x", "y")
            }
            let ended = try await dispatcher("watch", id, within: .seconds(15))
            #expect([0, 1].contains(ended.status), "\(ended)")
        }
    }
}
