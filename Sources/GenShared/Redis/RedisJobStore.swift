/// The store of jobs in Redis: turns the ports' calls into scripts and their replies into values.
package struct RedisJobStore: Sendable {
    /// How long a lease lasts, and how often it is renewed.
    package struct LeaseTiming: Sendable {
        package var length: Duration = .seconds(6)
        package var renewal: Duration = .seconds(2)

        package init() {}
    }

    let connection: RedisConnection
    let timing: LeaseTiming
    let leases: LeaseKeeper

    package init(connection: RedisConnection, timing: LeaseTiming = LeaseTiming()) {
        self.connection = connection
        self.timing = timing
        leases = LeaseKeeper(connection: connection, timing: timing)
    }

    /// Starts the timer that renews leases; a process that runs no jobs does not need it.
    package func startRenewing() async {
        let leases = leases
        await connection.every(timing.renewal) { leases.renewAll() }
    }

    func command(_ script: RedisScript, _ id: JobID) -> RedisCommand {
        let keys = JobKeys(id)
        var command = RedisCommand(script: script, keys: [keys.record, keys.events, keys.cancel])
        command.append(keys.channel)
        return command
    }

    func call(_ command: RedisCommand) async throws(StoreError) -> ScriptReply {
        do throws(RedisError) {
            return try ScriptReply(try await connection.send(command))
        } catch { throw StoreError(error, about: command) }
    }
}

extension StoreError {
    /// - Parameter command: what Redis refused; its key is named where the key is what is wrong.
    init(_ error: RedisError, about command: RedisCommand? = nil) {
        let isSpoilt = error.code == .refused("WRONGTYPE")
        self.init(
            isSpoilt ? "\(command?.key ?? "a key"): \(error.message)" : error.message,
            isCertainlyUndone: error.isCertainlyUndone, isRetryable: error.isRetryable,
            isUnreachable: error.code == .unreachable, isSpoiltRecord: isSpoilt)
    }
}

/// The reply of one of our scripts: a word, then values.
struct ScriptReply {
    let word: String
    private let values: ArraySlice<RedisReply>

    init(_ reply: RedisReply) throws(RedisError) {
        guard let array = reply.array, let word = array.first?.string else {
            throw RedisError(.unexpectedReply, "a script answered something that is no reply of ours")
        }
        self.word = word
        values = array.dropFirst()
    }

    func integer(_ index: Int) -> Int {
        guard index < values.count else { return 0 }
        return Int(clamping: values[values.startIndex + index].integer ?? 0)
    }

    func string(_ index: Int) -> String {
        guard index < values.count else { return "" }
        return values[values.startIndex + index].string ?? ""
    }

    func state(_ index: Int) throws(StoreError) -> JobState {
        guard let state = JobState(rawValue: string(index)) else { throw unexpected }
        return state
    }

    func eventID(_ index: Int) throws(StoreError) -> EventID {
        guard let id = EventID(string(index)) else { throw unexpected }
        return id
    }

    var unexpected: StoreError {
        StoreError(
            "a script answered \"\(word.prefix(40))\", which this version does not know", isCertainlyUndone: false,
            isRetryable: false)
    }
}
