import GenShared
import Synchronization

/// Whether the worker really takes jobs: every pool's interactive consumer is attached, or would be but for full slots.
///
/// A worker that is connected and does not consume looks alive and serves nobody; so it is said, in the log and in the
/// worker's record.
final class Readiness: Sendable {
    private struct State {
        /// Why a pool does not serve.
        var reasons: [String: String]
        var wasReady = false
    }

    private let state: Mutex<State>
    private let workerID: String
    private let pools: [String]

    init(workerID: String, pools: [String]) {
        self.workerID = workerID
        self.pools = pools
        state = Mutex(State(reasons: Dictionary(uniqueKeysWithValues: pools.map { ($0, "not connected yet") })))
    }

    /// Why the worker serves nobody, or serves not all it should; `nil` where all is well.
    var reason: String? {
        state.withLock { state in
            state.reasons.isEmpty
                ? nil
                : state.reasons.sorted { $0.key < $1.key }.map { "\($0.key): \($0.value)" }.joined(separator: "; ")
        }
    }

    /// The pool's interactive consumer is attached.
    func serves(_ pool: String) { change { $0[pool] = nil } }

    /// No pool can be served.
    func lost(_ reason: String) {
        change { [pools] in for pool in pools { $0[pool] = reason } }
    }

    /// The pool takes nothing, for that reason.
    func stops(_ pool: String, _ reason: String) { change { $0[pool] = reason } }

    private func change(_ body: (inout [String: String]) -> Void) {
        let turned: Bool? = state.withLock { state in
            body(&state.reasons)
            let isReady = state.reasons.isEmpty
            defer { state.wasReady = isReady }
            return isReady == state.wasReady ? nil : isReady
        }
        guard let turned else { return }
        if turned {
            Log.info("ready", ["worker": .string(workerID)])
        } else {
            Log.warning("not_ready", ["worker": .string(workerID), "reason": .string(reason ?? "")])
        }
    }
}
