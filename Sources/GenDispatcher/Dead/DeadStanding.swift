import GenShared

/// Whether a dead message's job is dead, as its record says.
///
/// A worker buries a job's message before it ends the record. Where it dies or is fenced in between, another one may
/// run the job, or its owner cancel it: the copy in the dead queue then stands for a job that did not fail.
enum DeadStanding: Sendable, Equatable {
    /// It failed, or nothing is known of it.
    case dead
    /// It may yet run, or does.
    case open(JobState)
    /// It ended, but not as failed: the message is a left-over.
    case over(JobState)

    /// - Parameter record: of the job that the message names; `nil` where there is none.
    init(_ message: DeadMessage, _ record: JobRecord?) {
        // What is no job has none of its own, whatever id it claims.
        guard let state = record?.state, case .success = message.job else {
            self = .dead
            return
        }
        self = state == .failed ? .dead : state.isTerminal ? .over(state) : .open(state)
    }

    /// What a person is told of a message that is not replayed, after its name; `nil` for a dead one.
    var note: String? {
        switch self {
        case .dead: nil
        case .open(let state): "is \(state.rawValue), not dead: it is left alone"
        case .over(let state): "is \(state.rawValue), not failed: nothing to replay"
        }
    }
}

/// How many messages of the dead queue stand for jobs that are not dead.
struct DeadLeftovers: Equatable {
    var open = 0
    var over = 0

    mutating func count(_ standing: DeadStanding) {
        switch standing {
        case .dead: break
        case .open: open += 1
        case .over: over += 1
        }
    }

    /// Lines for a person.
    var notes: [String] {
        var notes: [String] = []
        if open > 0 { notes.append("not listed: \(open) of jobs that are not over yet") }
        if over > 0 { notes.append("not listed: \(over) of jobs that completed, expired or were cancelled") }
        return notes
    }
}
