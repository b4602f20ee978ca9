import GenShared
import GenTestSupport

/// A store that takes appends and leaves every answer to the test.
final class HeldStore: ExecutionStore {
    struct Asked: Sendable {
        let batch: EventBatch
        let answer: @Sendable (Result<AppendReply, StoreError>) -> Void
    }

    struct NotScripted: Error {}

    /// The appends, in order.
    let asked = Journal<Asked>()

    func append(_ batch: EventBatch, completion: @escaping @Sendable (Result<AppendReply, StoreError>) -> Void) {
        asked.append(Asked(batch: batch, answer: completion))
    }

    func claim(_ request: ClaimRequest) async throws -> ClaimReply {
        throw NotScripted()
    }
    func keepLease(_ id: JobID, owner: String, listener: @escaping @Sendable (AppendReply) -> Void) {}
    func dropLease(_ id: JobID, owner: String) {}
    func release(_ release: JobRelease) async throws -> ReleaseReply { throw NotScripted() }
    func finish(_ ending: JobEnding) async throws -> FinishReply { throw NotScripted() }
    func record(_ id: JobID) async throws -> JobRecord? { throw NotScripted() }
    func announce(_ id: JobID, state: JobState, kind: String, tenant: String) async throws { throw NotScripted() }
}

extension EventBatch {
    /// The events' texts.
    var lines: [String] { events.map(\.json) }
    /// The chunks' text joined.
    var text: String {
        lines.compactMap(JobEvent.init(json:)).map { if case .chunk(let text) = $0.content { text } else { "" } }
            .joined()
    }
}
