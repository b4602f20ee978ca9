/// Why an attempt is stopped from outside.
enum AbortReason: Sendable, Equatable {
    /// Somebody asked for the job's end.
    case cancelled
    /// An interactive job needs the slot.
    case preempted
    /// The lease is another's: nothing may be written any more.
    case fenced
    /// The worker stops.
    case shutdown
    /// Redis took nothing for too long.
    case storeLost(String)
    /// A timer of ours ran out.
    case timedOut(String, isRetryable: Bool)
    /// The answer grew beyond its limit.
    case outputTooLarge(Int)
}
