import GenShared
import GenTestSupport
import Testing

/// What a submission answers, whatever the broker and the store do.
@Suite("Submission", .timeLimit(.minutes(1)))
struct SubmissionTests {
    private typealias Answer = ScriptedPublisher.Answer

    /// Every sequence of up to three answers.
    private static let sequences: [[ScriptedPublisher.Answer]] = {
        var all: [[Answer]] = [[]]
        var longest = all
        for _ in 0..<3 {
            longest = longest.flatMap { start in Answer.allCases.map { start + [$0] } }
            all += longest
        }
        return all
    }()

    @Test(
        "accepted, refused and unknown are said only where they are true, by the deadline",
        arguments: [nil, SubmissionFixture.idempotent(), SubmissionFixture.unique()] as [SubmitOptions?])
    func truth(options: SubmitOptions?) async {
        for sequence in Self.sequences {
            let fixture = SubmissionFixture(sequence)
            let id = SubmissionFixture.job().id
            let answer = await fixture.submit(options: options, deadline: .seconds(5))
            let given = fixture.publisher.given
            let mayBeTaken = given.contains(where: \.mayBeTaken)
            let entry = fixture.store[id]
            switch answer {
            case .success(let accepted):
                #expect(accepted == id && given.last == .confirmed, "\(sequence)")
                #expect(entry?.state == .queued, "\(sequence)")
            case .failure(.rejected):
                #expect(!mayBeTaken && (given.last == .nacked || given.last == .returned), "\(sequence)")
                #expect(entry?.state == .failed && entry?.failure?.code == .rejected, "\(sequence)")
            case .failure(.unreachable):
                #expect(!mayBeTaken, "\(sequence)")
                #expect(entry?.state == .failed, "\(sequence)")
            case .failure(.unknown(let unknown, _)):
                #expect(unknown == id && mayBeTaken, "\(sequence)")
                #expect(entry?.state == .queued, "\(sequence)")
            case .failure(.invalid), .failure(.held): Issue.record("\(sequence): \(answer)")
            }
            // The publisher's grace, since what it says at the deadline is worth more than nothing.
            #expect(fixture.scheduler.elapsed <= .milliseconds(5500), "\(sequence)")
            // A refused submission leaves no key behind; one that may run keeps it.
            let isKept = entry?.state == .queued
            if options?.idempotencyKey != nil {
                #expect(fixture.store.reservations == (isKept ? [id: answer.word.hasPrefix("accepted")] : [:]))
            }
            if options?.uniqueKey != nil { #expect(fixture.store.holders == (isKept ? [id] : [])) }
        }
    }

    @Test("a store that never answers ends the submission at its deadline, and nothing is published")
    func hangingStore() async {
        let fixture = SubmissionFixture([.confirmed])
        fixture.store.hang(.create)
        #expect(await fixture.submit(deadline: .seconds(2)).word == "unreachable")
        #expect(fixture.scheduler.elapsed == .seconds(2))
        #expect(fixture.publisher.messages.isEmpty)
    }

    @Test("a store that is away for a moment is asked again")
    func storeComesBack() async {
        let fixture = SubmissionFixture([.confirmed])
        fixture.store.fail(
            .create, with: StoreError("lost", isCertainlyUndone: false, isRetryable: true),
            StoreError("away", isCertainlyUndone: true, isRetryable: true))
        #expect(await fixture.submit().word == "accepted job-1")
    }

    @Test("a store that refuses for good ends the submission at once")
    func refusingStore() async {
        let fixture = SubmissionFixture([.confirmed])
        fixture.store.fail(.create, with: StoreError("NOAUTH", isCertainlyUndone: true, isRetryable: false))
        #expect(await fixture.submit().word == "unreachable")
        #expect(fixture.scheduler.elapsed == .zero)
    }

    @Test("a repetition that is refused does not end the job, which an earlier submission may have handed in")
    func refusedRepetition() async {
        let fixture = SubmissionFixture([.confirmed, .nacked])
        #expect(await fixture.submit().word == "accepted job-1")
        await fixture.scheduler.run { await fixture.scheduler.sleepUncancelled(for: .seconds(1)) }
        #expect(await fixture.submit().word == "unknown job-1")
        #expect(fixture.store[SubmissionFixture.job().id]?.state == .queued)
    }

    @Test("a job that has begun was accepted, even if its confirm was lost")
    func begunMeanwhile() async {
        let fixture = SubmissionFixture([.unknown])
        fixture.publisher.before { message in
            fixture.store[message.id]?.state = .running
            fixture.store[message.id]?.attempt = 1
        }
        #expect(await fixture.submit(deadline: .seconds(2)).word == "accepted job-1")
    }

    @Test("the id of another job is refused, and nothing is published")
    func takenID() async {
        let fixture = SubmissionFixture([.confirmed])
        _ = await fixture.submit()
        #expect(await fixture.submit(SubmissionFixture.job(text: "another")).word == "rejected")
        #expect(fixture.publisher.messages.count == 1)
    }

    @Test("a repetition with another time of expiry publishes the first one's message")
    func laterExpiry() async {
        let fixture = SubmissionFixture([.unknown, .confirmed])
        var job = SubmissionFixture.job()
        job.expiresAt = Timestamp(milliseconds: fixture.scheduler.timestamp.milliseconds + 60_000)
        #expect(await fixture.submit(job, deadline: .seconds(1)).word == "unknown job-1")
        job.expiresAt = Timestamp(milliseconds: fixture.scheduler.timestamp.milliseconds + 60_000)
        #expect(await fixture.submit(job).word == "accepted job-1")
        #expect(fixture.publisher.messages[0] == fixture.publisher.messages[1])
    }
}
