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

    @Test("whatever hangs, a submission ends by its deadline and a grace of 1.5 s, also with much time left")
    func hanging() async {
        for options in [nil, SubmissionFixture.idempotent(), SubmissionFixture.unique()] {
            for call in MemorySubmissionStore.Call.allCases {
                for broker in [.confirmed, .nacked, .unknown, .silent] as [ScriptedPublisher.Answer] {
                    let fixture = SubmissionFixture([broker])
                    fixture.store.hang(call)
                    let answer = await fixture.submit(options: options, deadline: .seconds(60))
                    let given = fixture.publisher.given
                    let mayBeTaken = given.contains(where: \.mayBeTaken)
                    let note: Comment = "\(call) \(broker): \(answer)"
                    #expect(fixture.scheduler.elapsed <= .milliseconds(61_500), note)
                    switch answer {
                    case .success: #expect(given.last == .confirmed, note)
                    case .failure(.unknown): #expect(mayBeTaken, note)
                    default: #expect(!mayBeTaken, note)
                    }
                }
            }
        }
    }

    @Test("what is answered too late is not acted upon: nothing is published after \"nothing was accepted\"")
    func lateStore() async {
        for call in [MemorySubmissionStore.Call.create, .hold] {
            let fixture = SubmissionFixture([.confirmed])
            fixture.store.hang(call)
            let options = call == .hold ? SubmissionFixture.unique() : nil
            #expect(await fixture.submit(options: options, deadline: .seconds(30)).word == "unreachable")
            #expect(fixture.scheduler.elapsed == .seconds(30))
            await fixture.scheduler.run { await fixture.scheduler.sleepUncancelled(for: .seconds(20_000)) }
            #expect(fixture.publisher.messages.isEmpty)
        }
    }

    @Test("submissions that share an alarm each end by their own deadline")
    func sharedAlarm() async {
        let scheduler = ManualScheduler()
        let store = MemorySubmissionStore(scheduler: scheduler)
        store.hang(.create)
        let submission = Submission(
            store: store, publisher: ScriptedPublisher([], scheduler: scheduler), scheduler: scheduler,
            alarm: Alarm(on: scheduler))
        let ends = await scheduler.run {
            await withTaskGroup(of: [Int: Duration].self) { group in
                for seconds in [7, 3, 9, 3, 5] {
                    group.addTask(executorPreference: scheduler) {
                        await scheduler.sleepUncancelled(for: .milliseconds(100 * seconds))
                        let began = scheduler.elapsed
                        let job = SubmissionFixture.job("job-\(seconds)")
                        do throws(SubmitError) { try await submission.submit(job, deadline: .seconds(seconds)) } catch {
                        }
                        return [seconds: scheduler.elapsed - began]
                    }
                }
                return await group.reduce(into: [:]) { $0.merge($1) { first, _ in first } }
            }
        }
        for (seconds, elapsed) in ends { #expect(elapsed == .seconds(seconds)) }
        #expect(ends.count == 4)
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
