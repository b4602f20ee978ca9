/// What a command's exit tells the shell.
package enum ExitCode: Int32, Sendable, CaseIterable {
    case done = 0
    case failed = 1
    case usage = 2
    case unreachable = 3
    case unknownJob = 4
    case rejected = 5
    case cancelled = 6
    case expired = 7
    case unknownOutcome = 8
    case stillRunning = 9
    case interrupted = 130

    /// The table that `--help` shows.
    package static let help = """
        Exit codes: 0 completed or done; 1 job failed; 2 usage; 3 cannot reach a server; 4 unknown job; 5 rejected;
        6 cancelled; 7 expired; 8 outcome unknown; 9 still running; 130 interrupted.
        """
}
