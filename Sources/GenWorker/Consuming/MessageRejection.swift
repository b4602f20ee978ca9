import GenShared

/// What becomes of a message that is no job of ours: a copy in the dead queue, and the end of its record, if it names
/// one.
struct MessageRejection: Sendable {
    let services: ExecutionServices
    let lookUp: any SubmissionStore
    let message: JobDelivery

    /// - Returns: whether the message is safe where it belongs and may be acknowledged.
    func record(_ rejection: JobRejection) async -> Bool {
        Log.warning(
            "message_rejected",
            ["reason": .string(rejection.code.rawValue), "detail": .string(rejection.description)])
        guard
            await services.router.bury(message, reason: rejection.code.rawValue, detail: rejection.description)
        else { return false }
        guard rejection.code != .badID, let id = message.salvagedID else { return true }
        do {
            let failure = JobFailure(.rejected, "the message is no job: \(rejection)")
            let kind = message.type ?? ""
            let state = try await lookUp.reject(
                id, failure: failure,
                rejected: RejectedMessage(body: message.body, kind: kind, pool: message.pool, lane: message.lane))
            if let state { try await services.store.announce(id, state: state, kind: kind, tenant: "default") }
            return true
        } catch {
            Log.warning("record_not_rejected", ["job": .string(id.rawValue), "reason": .string("\(error)")])
            return false
        }
    }
}
