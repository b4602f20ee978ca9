import Synchronization

/// What a submission would answer if its time were over now.
///
/// The submission moves it along with what it does; whoever keeps the time takes the answer when it is over. From then
/// on the submission can no longer move it, and so does nothing more that the answer does not cover.
final class Standing: Sendable {
    private struct State {
        var answer: Result<JobID, SubmitError> = .failure(
            .unreachable("the store of jobs did not answer within the deadline"))
        var grace: Duration = .zero
        var isOver = false
    }

    private let state = Mutex(State())

    var isOver: Bool { state.withLock { $0.isOver } }

    /// - Returns: false where the time is over: then what would come next must not be done.
    func move(to answer: Result<JobID, SubmitError>, grace: Duration) -> Bool {
        state.withLock { state in
            guard !state.isOver else { return false }
            (state.answer, state.grace) = (answer, grace)
            return true
        }
    }

    /// Ends it, if the time and its grace are over.
    /// - Returns: the answer, or how long after the deadline the grace ends.
    func end(after late: Duration) -> (answer: Result<JobID, SubmitError>?, grace: Duration) {
        state.withLock { state in
            guard late >= state.grace else { return (nil, state.grace) }
            state.isOver = true
            return (state.answer, state.grace)
        }
    }
}
