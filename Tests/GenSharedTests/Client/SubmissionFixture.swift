import GenShared
import GenTestSupport

/// A submission in virtual time on a store in memory and a scripted broker.
struct SubmissionFixture: Sendable {
    let scheduler: ManualScheduler
    let store: MemorySubmissionStore
    let publisher: ScriptedPublisher
    let submission: Submission

    init(_ answers: [ScriptedPublisher.Answer], on scheduler: ManualScheduler = ManualScheduler()) {
        self.scheduler = scheduler
        store = MemorySubmissionStore(scheduler: scheduler)
        publisher = ScriptedPublisher(answers, scheduler: scheduler)
        submission = Submission(store: store, publisher: publisher, scheduler: scheduler)
    }

    static func job(_ id: String = "job-1", text: String = "coffee shop") -> Job {
        Job(id: JobID(id) ?? JobID(atMilliseconds: 0), kind: .slogan, input: JobInput(text: text))
    }

    typealias Answer = Result<JobID, SubmitError>

    /// Submits in virtual time, with keys if there are any.
    func submit(
        _ job: Job = job(), options: SubmitOptions? = nil, deadline: Duration = .seconds(10)
    ) async -> Answer {
        await scheduler.run { await submitInside(job, options: options, deadline: deadline) }
    }

    /// As above, within a run.
    func submitInside(
        _ job: Job = job(), options: SubmitOptions? = nil, deadline: Duration = .seconds(10)
    ) async -> Answer {
        do throws(SubmitError) {
            guard let options else { return .success(try await submission.submit(job, deadline: deadline)) }
            let keyed = try KeyedSubmission(submission, keys: store, options: options)
            return .success(try await keyed.submit(job, deadline: deadline))
        } catch { return .failure(error) }
    }

    static func idempotent(_ key: String = "k") -> SubmitOptions {
        var options = SubmitOptions()
        options.idempotencyKey = key
        return options
    }

    static func unique(_ key: String = "u", replaces: Bool = false) -> SubmitOptions {
        var options = SubmitOptions()
        options.uniqueKey = key
        options.replacesHolder = replaces
        return options
    }
}

extension Result<JobID, SubmitError> {
    /// The answer in a word, for expectations.
    var word: String {
        switch self {
        case .success(let id): "accepted \(id)"
        case .failure(.invalid): "invalid"
        case .failure(.unreachable): "unreachable"
        case .failure(.rejected): "rejected"
        case .failure(.held(let id, _)): "held by \(id)"
        case .failure(.unknown(let id, _)): "unknown \(id)"
        }
    }
}
