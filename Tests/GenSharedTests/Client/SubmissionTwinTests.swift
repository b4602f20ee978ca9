import GenShared
import GenTestSupport
import Testing

/// Submissions of one job that meet each other, in thousands of orders.
@Suite("Submission twins", .timeLimit(.minutes(2)))
struct SubmissionTwinTests {
    private struct Run {
        var store: MemorySubmissionStore
        var confirmed: Set<JobID>
        var answers: [SubmissionFixture.Answer]

        /// Jobs that a worker will run.
        var runnable: Set<JobID> {
            confirmed.filter { store[$0]?.state == .queued }
        }
    }

    /// Three submitters with one key, each with a broker of its own mood, at random moments.
    private func run(_ seed: UInt64, _ options: SubmitOptions) async -> Run {
        let scheduler = ManualScheduler(seed: seed)
        let store = MemorySubmissionStore(scheduler: scheduler)
        store.beSlow()
        let moods: [ScriptedPublisher.Answer] = [.confirmed, .nacked, .returned, .unknown, .notSent]
        var random = SeededGenerator(seed: seed)
        let publishers = (0..<3).map { _ in
            let answers = (0..<2).map { _ in moods[Int(random.next() % 5)] }
            return ScriptedPublisher(answers, scheduler: scheduler, isSlow: true)
        }
        let answers = await scheduler.run {
            await withTaskGroup(of: SubmissionFixture.Answer.self) { group in
                for (index, publisher) in publishers.enumerated() {
                    group.addTask(executorPreference: scheduler) {
                        await scheduler.sleepUncancelled(for: .milliseconds(scheduler.random() % 100))
                        let submission = Submission(store: store, publisher: publisher, scheduler: scheduler)
                        do throws(SubmitError) {
                            let keyed = try KeyedSubmission(submission, keys: store, options: options)
                            let job = SubmissionFixture.job("job-\(index)")
                            return .success(try await keyed.submit(job, deadline: .seconds(2)))
                        } catch { return .failure(error) }
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
        }
        return Run(
            store: store, confirmed: publishers.reduce(into: []) { $0.formUnion($1.confirmed) }, answers: answers)
    }

    @Test("with one idempotency key nobody is told \"accepted\" of a job that another ended, and one job runs at most")
    func idempotent() async {
        for seed in 1...UInt64(500) {
            let run = await run(seed, SubmissionFixture.idempotent())
            let words = run.answers.map(\.word)
            for case .success(let id) in run.answers { #expect(run.runnable.contains(id), "seed \(seed): \(words)") }
            #expect(run.runnable.count <= 1, "seed \(seed): \(words)")
            let isDoubtful = run.answers.contains { if case .failure(.unknown) = $0 { true } else { false } }
            // A job that runs is known to whoever handed it in, or they know that they do not know.
            let isKnown = words.contains { $0.hasPrefix("accepted") } || isDoubtful
            #expect(run.runnable.isEmpty || isKnown, "seed \(seed): \(words)")
        }
    }

    @Test("with one unique key one job is open at most, and whoever was accepted has it")
    func unique() async {
        for seed in 1...UInt64(500) {
            let run = await run(seed, SubmissionFixture.unique())
            let words = run.answers.map(\.word)
            let open = run.store.jobs.filter { !$0.value.state.isTerminal }
            #expect(open.count <= 1, "seed \(seed): \(words)")
            for case .success(let id) in run.answers { #expect(open.keys.contains(id), "seed \(seed): \(words)") }
        }
    }
}
