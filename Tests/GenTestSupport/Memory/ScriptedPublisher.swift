package import GenShared
import Synchronization

/// A broker that answers as a test says, in order; after that it cannot be reached.
package final class ScriptedPublisher: JobPublisher {
    package enum Answer: Sendable, Hashable, CaseIterable {
        case confirmed
        case returned
        case nacked
        case notSent
        case unknown
        /// No answer within any limit; the message may have been sent.
        case silent
        /// A refusal that no repetition mends.
        case unauthorized

        /// Whether the broker may have the message.
        package var mayBeTaken: Bool { self == .confirmed || self == .unknown || self == .silent }
    }

    private struct State {
        var answers: [Answer]
        var given: [Answer] = []
        var messages: [JobMessage] = []
        var confirmed: Set<JobID> = []
        var before: (@Sendable (JobMessage) -> Void)?
    }

    private let state: Mutex<State>
    private let scheduler: any Scheduler

    private let isSlow: Bool

    /// - Parameter isSlow: whether each answer takes a random time.
    package init(_ answers: [Answer], scheduler: any Scheduler, isSlow: Bool = false) {
        self.isSlow = isSlow
        state = Mutex(State(answers: answers))
        self.scheduler = scheduler
    }

    /// What was answered so far.
    package var given: [Answer] { state.withLock { $0.given } }
    /// What was published so far.
    package var messages: [JobMessage] { state.withLock { $0.messages } }
    /// The jobs that the broker has said it has.
    package var confirmed: Set<JobID> { state.withLock { $0.confirmed } }
    /// Happens before each answer.
    package func before(_ body: @escaping @Sendable (JobMessage) -> Void) { state.withLock { $0.before = body } }

    package func publish(
        _ message: JobMessage, within limit: Duration
    ) async throws(PublisherError) -> PublishOutcome {
        let (answer, before) = state.withLock { state in
            let answer = state.answers.isEmpty ? .notSent : state.answers.removeFirst()
            state.given.append(answer)
            state.messages.append(message)
            return (answer, state.before)
        }
        before?(message)
        if isSlow { await scheduler.sleepUncancelled(for: .milliseconds(scheduler.random() % 40)) }
        switch answer {
        case .confirmed:
            state.withLock { _ = $0.confirmed.insert(message.id) }
            return .confirmed
        case .returned: return .returned("312 NO_ROUTE")
        case .nacked: return .nacked
        case .notSent: return .notSent("the connection is closed")
        case .unauthorized: throw PublisherError("RabbitMQ refuses the user", isFinal: true)
        case .unknown:
            await scheduler.sleepUncancelled(for: min(limit, .seconds(1)))
            return .unknown("no confirm")
        case .silent:
            await scheduler.sleepUncancelled(for: limit + .seconds(60))
            return .confirmed
        }
    }
}
