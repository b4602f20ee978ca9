import GenShared

/// What `status` and `result` have in common: one job's record, shown as text or as JSON.
struct RecordLookUp {
    let id: JobID
    let isJSON: Bool

    /// - Throws: `UsageError`.
    init(_ arguments: Arguments) throws(UsageError) {
        id = try arguments.jobID()
        isJSON = arguments.has("json")
    }

    /// The record.
    /// - Throws: `WatchError.unknownJob`; `StoreError`.
    func record(_ context: CommandContext) async throws -> JobRecord {
        let client = context.makeClient()
        let record = try await client.record(id)
        await client.close()
        guard let record else { throw WatchError.unknownJob }
        return record
    }
}
