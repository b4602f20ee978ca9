import GenShared
import Synchronization

/// A store for `try`: shows the events of its one job on the terminal and keeps nothing.
final class PrintingStore: ExecutionStore {
    private struct State {
        var code = ExitCode.failed
    }

    private let state = Mutex(State())

    /// How the job ended.
    var exitCode: ExitCode { state.withLock { $0.code } }

    func claim(_ request: ClaimRequest) async throws -> ClaimReply {
        .claimed(Claim(attempt: 1, last: EventID(attempt: 1, sequence: 1)))
    }

    func append(_ batch: EventBatch, completion: @escaping @Sendable (Result<AppendReply, StoreError>) -> Void) {
        for event in batch.events { show(event.json) }
        completion(.success(.ok(isCancelWanted: false)))
    }

    func keepLease(_ id: JobID, owner: String, listener: @escaping @Sendable (AppendReply) -> Void) {}
    func dropLease(_ id: JobID, owner: String) {}

    func release(_ release: JobRelease) async throws -> ReleaseReply {
        if case .retrying(_, let error?, _) = release.content {
            Terminal.writeError("genworker: the attempt failed: \(error.message)")
        }
        return .released(failures: 1)
    }

    func finish(_ ending: JobEnding) async throws -> FinishReply {
        for event in ending.events { show(event.json) }
        let code: ExitCode
        switch ending.content {
        case .completed(let completion):
            Terminal.write("\n")
            Terminal.writeError(CompletionLine.text(completion))
            code = .done
        case .cancelled:
            Terminal.writeError("genworker: cancelled")
            code = .cancelled
        case .failed(let failure, _):
            Terminal.writeError("genworker: \(failure.message)")
            code = .failed
        default: code = .failed
        }
        state.withLock { $0.code = code }
        return .ended(ending.content.terminalState ?? .failed)
    }

    func record(_ id: JobID) async throws -> JobRecord? { nil }

    func announce(_ id: JobID, state: JobState, kind: String, tenant: String) async throws {}

    private func show(_ json: String) {
        guard let event = JobEvent(json: json) else { return }
        switch event.content {
        case .chunk(let text): Terminal.write(Terminal.isInteractive ? TerminalText.safe(text) : text)
        default: break
        }
    }
}

/// Where `try` sends copies of messages: nowhere.
struct NoRouter: MessageRouter {
    func retry(_ delivery: JobDelivery, after delay: Duration) async -> Bool { true }
    func bury(_ delivery: JobDelivery, reason: String, detail: String) async -> Bool { true }
}

/// One line on a terminal that says that a model is loading; nothing elsewhere after the first time.
final class LoadingLine: Sendable {
    private let shown = Mutex((count: 0, began: ContinuousClock.now))

    func show(_ backend: String) {
        let (count, began) = shown.withLock { state in
            state.count += 1
            return (state.count, state.began)
        }
        let seconds = (ContinuousClock.now - began).milliseconds / 1000
        if Terminal.isErrorInteractive {
            Terminal.writeErrorText("\r\(backend): loading the model … \(seconds) s ")
        } else if count == 1 {
            Terminal.writeError("\(backend): loading the model …")
        }
    }

    func end() {
        let count = shown.withLock { $0.count }
        if Terminal.isErrorInteractive, count > 0 { Terminal.writeErrorText("\r\u{1B}[K") }
    }
}
