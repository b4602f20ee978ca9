import GenShared
import GenTestSupport
import Testing

/// The same again, and one at a time.
@Suite("Submission keys", .timeLimit(.minutes(1)))
struct SubmissionKeyTests {
    private let same = SubmissionFixture.idempotent()
    private let one = SubmissionFixture.unique()
    private let replacing = SubmissionFixture.unique(replaces: true)

    private func job(_ id: String, _ text: String = "coffee shop") -> Job { SubmissionFixture.job(id, text: text) }
    private func id(_ text: String) throws -> JobID { try #require(JobID(text)) }

    // MARK: Idempotency

    @Test("a repetition answers the first job's id and makes no second one")
    func repetition() async {
        let fixture = SubmissionFixture([.confirmed, .confirmed])
        #expect(await fixture.submit(job("a"), options: same).word == "accepted a")
        #expect(await fixture.submit(job("b"), options: same).word == "accepted a")
        #expect(Array(fixture.store.jobs.keys) == [job("a").id])
        #expect(fixture.publisher.messages.allSatisfy { $0.id == job("a").id })
    }

    @Test("once accepted, a repetition is answered whatever the broker says to it")
    func repetitionIsRefused() async {
        let fixture = SubmissionFixture([.confirmed, .nacked])
        _ = await fixture.submit(job("a"), options: same)
        #expect(await fixture.submit(job("b"), options: same).word == "accepted a")
        #expect(fixture.store[job("a").id]?.state == .queued)
    }

    @Test("another payload under the key is refused with the id that holds it")
    func otherPayload() async {
        let fixture = SubmissionFixture([.confirmed, .confirmed])
        _ = await fixture.submit(job("a"), options: same)
        #expect(await fixture.submit(job("b", "a bakery"), options: same).word == "held by a")
        #expect(fixture.store[job("b").id] == nil)
    }

    @Test("a submission of unknown outcome is continued under its id")
    func continued() async {
        let fixture = SubmissionFixture([.unknown, .confirmed])
        #expect(await fixture.submit(job("a"), options: same, deadline: .seconds(1)).word == "unknown a")
        #expect(await fixture.submit(job("b"), options: same).word == "accepted a")
        #expect(fixture.store.reservations == [job("a").id: true])
    }

    @Test("a submitter that died between key and record is continued by the next")
    func diedBeforeRecord() async {
        let fixture = SubmissionFixture([.confirmed])
        fixture.store.fail(.create, with: StoreError("away", isCertainlyUndone: true, isRetryable: false))
        fixture.store.fail(.hold, with: StoreError("away", isCertainlyUndone: true, isRetryable: false))
        #expect(await fixture.submit(job("a"), options: same).word == "unreachable")
        #expect(fixture.store.reservations == [:])
        #expect(await fixture.submit(job("b"), options: same).word == "accepted b")
    }

    @Test("a refused job that still has its key is forgotten: the next submission is a new one")
    func refusedBefore() async throws {
        let fixture = SubmissionFixture([.unknown, .confirmed])
        _ = await fixture.submit(job("a"), options: same, deadline: .seconds(1))
        fixture.store[try id("a")]?.state = .failed
        fixture.store[try id("a")]?.failure = JobFailure(.rejected, "full")
        #expect(await fixture.submit(job("b"), options: same).word == "accepted b")
    }

    @Test("a job that ran and failed answers its repetition")
    func failedBefore() async throws {
        let fixture = SubmissionFixture([.unknown, .confirmed])
        _ = await fixture.submit(job("a"), options: same, deadline: .seconds(1))
        fixture.store[try id("a")]?.state = .failed
        fixture.store[try id("a")]?.attempt = 4
        fixture.store[try id("a")]?.failure = JobFailure(.exhausted, "4 attempts failed")
        #expect(await fixture.submit(job("b"), options: same).word == "accepted a")
    }

    @Test("one that is confirmed after its twin was refused is refused, too, unless it runs")
    func twinRefused() async {
        for runs in [false, true] {
            let fixture = SubmissionFixture([.confirmed])
            fixture.publisher.before { message in
                fixture.store.forgetReservations()
                if runs { fixture.store[message.id]?.state = .running }
            }
            #expect(await fixture.submit(job("a"), options: same).word == (runs ? "accepted a" : "rejected"))
            // A repetition must find the job that runs.
            #expect(fixture.store.reservations == (runs ? [job("a").id: true] : [:]))
        }
    }

    @Test("a refused submission whose twin was accepted and runs leaves both keys with the job")
    func twinRuns() async {
        var both = same
        both.uniqueKey = "u"
        let fixture = SubmissionFixture([.nacked])
        fixture.publisher.before { fixture.store[$0.id]?.state = .running }
        #expect(await fixture.submit(job("a"), options: both).word == "accepted a")
        #expect(fixture.store.reservations == [job("a").id: true])
        #expect(fixture.store.holders == [job("a").id])
    }

    @Test("a key has 1 to 256 bytes", arguments: [0, 257])
    func length(count: Int) async {
        let key = String(repeating: "k", count: count)
        let fixture = SubmissionFixture([.confirmed])
        #expect(await fixture.submit(options: SubmissionFixture.idempotent(key)).word == "invalid")
        #expect(await fixture.submit(options: SubmissionFixture.unique(key)).word == "invalid")
        #expect(fixture.store.jobs.isEmpty)
    }

    // MARK: Unique keys

    @Test("a key is busy while its job is open, and free once that has ended", arguments: JobState.allCases)
    func busy(state: JobState) async throws {
        let fixture = SubmissionFixture([.confirmed, .confirmed])
        #expect(await fixture.submit(job("a"), options: one).word == "accepted a")
        fixture.store[try id("a")]?.state = state
        #expect(await fixture.submit(job("b"), options: one).word == (state.isTerminal ? "accepted b" : "held by a"))
        #expect(fixture.store.holders == [try id(state.isTerminal ? "b" : "a")])
    }

    @Test("a refused submission under the id of an open job leaves that job its unique key")
    func takenIDKeepsKey() async {
        let fixture = SubmissionFixture([.confirmed])
        #expect(await fixture.submit(job("a"), options: one).word == "accepted a")
        #expect(await fixture.submit(job("a", "another text"), options: one).word == "rejected")
        #expect(fixture.store.holders == [job("a").id])
        #expect(await fixture.submit(job("b"), options: one).word == "held by a")
    }

    @Test("a holder without a record keeps the key for a minute")
    func missingRecord() async throws {
        let fixture = SubmissionFixture([.confirmed, .confirmed])
        _ = await fixture.submit(job("a"), options: one)
        fixture.store[try id("a")] = nil
        await fixture.scheduler.run { await fixture.scheduler.sleepUncancelled(for: .seconds(59)) }
        #expect(await fixture.submit(job("b"), options: one).word == "held by a")
        await fixture.scheduler.run { await fixture.scheduler.sleepUncancelled(for: .seconds(1)) }
        #expect(await fixture.submit(job("b"), options: one).word == "accepted b")
    }

    @Test("a holder whose time is over is ended by whoever sees it")
    func expiredHolder() async throws {
        let fixture = SubmissionFixture([.confirmed, .confirmed])
        var first = job("a")
        first.expiresAt = Timestamp(milliseconds: fixture.scheduler.timestamp.milliseconds + 1000)
        _ = await fixture.submit(first, options: one)
        await fixture.scheduler.run { await fixture.scheduler.sleepUncancelled(for: .seconds(2)) }
        #expect(await fixture.submit(job("b"), options: one).word == "accepted b")
        #expect(fixture.store[try id("a")]?.state == .expired)
    }

    @Test("replacing cancels a waiting job and takes its place at once")
    func replacesQueued() async throws {
        let fixture = SubmissionFixture([.confirmed, .confirmed])
        _ = await fixture.submit(job("a"), options: one)
        #expect(await fixture.submit(job("b"), options: replacing).word == "accepted b")
        #expect(fixture.store[try id("a")]?.state == .cancelled)
        #expect(fixture.scheduler.elapsed == .zero)
    }

    @Test("replacing waits for the end of a running job, so that never two run")
    func replacesRunning() async throws {
        let fixture = SubmissionFixture([.confirmed, .confirmed])
        let holder = try id("a")
        _ = await fixture.submit(job("a"), options: one)
        fixture.store[holder]?.state = .running
        let answer = await fixture.scheduler.run { [replacing] in
            fixture.scheduler.start {
                await fixture.scheduler.sleepUncancelled(for: .seconds(3))
                if fixture.store[holder]?.isCancelWanted == true { fixture.store[holder]?.state = .cancelled }
            }
            return await fixture.submitInside(SubmissionFixture.job("b"), options: replacing)
        }
        #expect(answer.word == "accepted b")
        #expect(fixture.scheduler.elapsed >= .seconds(3) && fixture.scheduler.elapsed < .seconds(4))
    }

    @Test("a running job that does not end by the deadline keeps the key")
    func replaceGivesUp() async throws {
        let fixture = SubmissionFixture([.confirmed, .confirmed])
        _ = await fixture.submit(job("a"), options: one)
        fixture.store[try id("a")]?.state = .running
        #expect(await fixture.submit(job("b"), options: replacing, deadline: .seconds(5)).word == "held by a")
        #expect(fixture.scheduler.elapsed <= .seconds(5))
        #expect(fixture.publisher.messages.count == 1)
    }

    @Test("a submitter that lost the key before its record was there publishes nothing")
    func lostBetween() async throws {
        let fixture = SubmissionFixture([.confirmed])
        let thief = try id("thief")
        fixture.store.afterNextHold { fixture.store.giveHolds(to: thief) }
        #expect(await fixture.submit(job("a"), options: one).word == "held by thief")
        #expect(fixture.publisher.messages.isEmpty)
        #expect(fixture.store[try id("a")]?.state == .failed)
        #expect(fixture.store.holders == [thief])
    }

    @Test("a repetition of a job that has the unique key is no rival of it")
    func bothKeys() async {
        let fixture = SubmissionFixture([.confirmed, .confirmed])
        var both = same
        both.uniqueKey = "u"
        #expect(await fixture.submit(job("a"), options: both).word == "accepted a")
        #expect(await fixture.submit(job("b"), options: both).word == "accepted a")
    }

    @Test("a submission refused as busy gives its idempotency key back")
    func busyGivesBack() async {
        let fixture = SubmissionFixture([.confirmed, .confirmed])
        _ = await fixture.submit(job("a"), options: one)
        var both = same
        both.uniqueKey = "u"
        #expect(await fixture.submit(job("b"), options: both).word == "held by a")
        #expect(fixture.store.reservations.isEmpty)
    }
}
