import Testing

@testable import GenShared

@Suite("Job record", .timeLimit(.minutes(1)))
struct JobRecordTests {
    private func record(_ fields: [String: String]) throws -> JobRecord? {
        JobRecord(id: try #require(JobID("a")), fields: fields)
    }

    @Test(
        "without a state that is known there is no record",
        arguments: [[:], ["state": ""], ["state": "done"], ["attempt": "1"], ["state": "Queued"]] as [[String: String]])
    func requiresState(fields: [String: String]) throws {
        #expect(try record(fields) == nil)
    }

    @Test("a state alone is a record with defaults", arguments: [JobState.queued, .running, .retrying])
    func fillsDefaults(state: JobState) throws {
        let record = try #require(try record(["state": state.rawValue]))
        #expect(record.id.rawValue == "a")
        #expect(record.state == state)
        #expect(record.kind == nil)
        #expect((record.pool, record.lane) == ("", ""))
        #expect((record.attempt, record.failures) == (0, 0))
        #expect(record.last == .queued)
        #expect(record.queuedAt == nil)
        #expect(record.startedAt == nil)
        #expect(record.worker == nil)
        #expect(record.ending == nil)
    }

    @Test("every field is read")
    func readsFields() throws {
        let record = try #require(
            try record([
                "state": "running", "kind": "image", "pool": "p", "lane": "batch", "attempt": "3", "failures": "2",
                "last": "3-17", "queued_at": "1", "started_at": "2", "finished_at": "3", "expires_at": "4",
                "lease_until": "5",
                "worker": "w",
            ]))
        #expect(record.kind == .image)
        #expect((record.pool, record.lane, record.worker) == ("p", "batch", "w"))
        #expect((record.attempt, record.failures) == (3, 2))
        #expect(record.last == EventID(attempt: 3, sequence: 17))
        let times = [record.queuedAt, record.startedAt, record.finishedAt, record.expiresAt, record.leaseUntil]
        #expect(times.map { $0?.milliseconds } == [1, 2, 3, 4, 5])
    }

    @Test(
        "a broken field counts as none and never traps",
        arguments: ["", "x", "-1", "0", "18446744073709551616", "1.5", " 1"])
    func survivesBrokenFields(text: String) throws {
        var fields = Dictionary(uniqueKeysWithValues: JobRecord.fieldNames.map { ($0, text) })
        for state in JobState.allCases {
            fields["state"] = state.rawValue
            let record = try #require(try record(fields))
            #expect(record.state == state)
            #expect(record.queuedAt == nil)
            #expect(record.last == .queued)
            #expect((record.ending != nil) == state.isTerminal)
        }
    }

    @Test("a completed job has its result, and the rest as far as it can be read")
    func readsCompletion() throws {
        let usage = Usage(promptTokens: 1, completionTokens: 2, cachedTokens: 1)
        let stats = Stats(queueMilliseconds: 1, firstTokenMilliseconds: 2, totalMilliseconds: 3, tokensPerSecond: 4.5)
        let whole = try record([
            "state": "completed", "result": "r\"", "finish_reason": "length", "usage": usage.json, "stats": stats.json,
        ])
        #expect(
            whole?.ending == .completed(Completion(result: "r\"", finishReason: .length, usage: usage, stats: stats)))
        let none = Stats(queueMilliseconds: 0, firstTokenMilliseconds: nil, totalMilliseconds: 0, tokensPerSecond: nil)
        let bare = try record(["state": "completed", "result": "r", "usage": "", "stats": "{"])
        #expect(bare?.ending == .completed(Completion(result: "r", finishReason: .stop, usage: nil, stats: none)))
    }

    @Test("a failed job has its error, or says that none was recorded")
    func readsFailure() throws {
        let (failure, usage) = (JobFailure(.poison, "m", backend: "b"), Usage(promptTokens: 1, completionTokens: 2))
        let whole = try record(["state": "failed", "error": failure.json, "usage": usage.json])
        #expect(whole?.ending == .failed(failure, partial: usage))
        let bare = try record(["state": "failed"])
        #expect(bare?.ending == .failed(JobFailure(.internal, "no error was recorded"), partial: nil))
    }

    @Test("a cancelled job says who asked and how long it took, an expired one nothing")
    func readsOtherEnds() throws {
        let whole = try record(["state": "cancelled", "cancelled_by": "cli", "cancel_latency_ms": "7"])
        #expect(whole?.ending == .cancelled(by: "cli", latencyMilliseconds: 7, partial: nil))
        let bare = try record(["state": "cancelled", "cancelled_by": "", "cancel_latency_ms": ""])
        #expect(bare?.ending == .cancelled(by: nil, latencyMilliseconds: nil, partial: nil))
        #expect(try record(["state": "expired"])?.ending == .expired)
    }

    @Test("the end of a record is the end of its state", arguments: JobState.allCases)
    func endsInItsState(state: JobState) throws {
        let record = try #require(try record(["state": state.rawValue]))
        #expect(record.ending?.terminalState == (state.isTerminal ? state : nil))
    }
}
