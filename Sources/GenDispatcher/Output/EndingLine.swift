import GenShared

/// The line on standard error that says how a job ended.
enum EndingLine {
    static func text(_ ending: JobEvent.Content, id: JobID) -> String {
        let line =
            switch ending {
            case .completed(let completion): CompletionLine.text(completion)
            case .failed(let failure, _):
                "gendispatcher: job \(id) failed (\(failure.code.rawValue)): \(failure.message)"
            case .cancelled(let by, let latency, _):
                "gendispatcher: job \(id) was cancelled\(by.map { " by \($0)" } ?? "")\(latency.map { " within \($0) ms" } ?? "")"
            case .expired: "gendispatcher: job \(id) expired before a worker took it"
            default: "gendispatcher: job \(id) has not ended"
            }
        return TerminalText.line(line)
    }
}
