package import GenShared

/// The rules of the Lua scripts once more, in memory, for many jobs: the simulation's Redis.
///
/// Held to the scripts themselves by the conformance suite, which both must pass. Time is given by the caller, in
/// milliseconds. What a call publishes is gathered in `published`.
package struct StoreRules: Sendable {
    /// What the store knows of one job.
    package struct Entry: Sendable {
        /// As in the hash.
        package var fields: [String: String] = [:]
        /// As in the stream: id and JSON.
        package var log: [(id: EventID, json: String)] = []
        /// Who asked for the job's end, and when.
        package var flag: (by: String, at: Int64)?

        package init() {}

        package var state: JobState? { fields["state"].flatMap(JobState.init(rawValue:)) }
        package var last: EventID { fields["last"].flatMap { EventID($0) } ?? .queued }
        package func integer(_ name: String) -> Int64 { fields[name].flatMap { Int64($0) } ?? 0 }
    }

    /// A rule that is broken on purpose, to see that the simulation finds it.
    package enum Fault: String, CaseIterable, Sendable {
        /// Writes of an owner that lost the lease are taken.
        case noFence
        /// A release at no cost takes the attempt back: the number is used again.
        case refundByDecrement
        /// The end is written without looking at the cancel flag.
        case finishIgnoresFlag
        /// Events are added whatever event they say they follow.
        case appendIgnoresPrevious
        /// A claim is given while another's lease is alive.
        case claimIgnoresLease
        /// An ended job is given again.
        case claimIgnoresEnd
        /// Failures are not counted.
        case failuresNotCounted
        /// Crashes are not counted.
        case crashesNotCounted
        /// The next attempt may begin before its time.
        case noWait
    }

    package private(set) var entries: [JobID: Entry] = [:]
    package var published: [(channel: String, message: String)] = []
    package var faults: Set<Fault> = []
    package private(set) var announced: [(id: JobID, state: JobState)] = []

    static let failureLimit: Int64 = 4
    static let crashLimit: Int64 = 3
    package static let leaseMilliseconds: Int64 = 6000

    package init() {}

    /// Forgets everything, as an empty restart does.
    package mutating func removeAll() { entries = [:] }

    /// Changes what is stored from outside, as a test or a stranger may.
    package mutating func mutate(_ id: JobID, _ body: (inout Entry) -> Void) {
        guard var entry = entries[id] else { return }
        body(&entry)
        entries[id] = entry
    }

    // MARK: Parts that several rules share

    mutating func with<Reply>(_ id: JobID, _ body: (inout Entry, inout Emission) -> Reply) -> Reply {
        var entry = entries[id] ?? Entry()
        var emission = Emission(channel: JobKeys(id).channel)
        let reply = body(&entry, &emission)
        published += emission.published
        // A call that writes nothing makes nothing.
        if !entry.fields.isEmpty || entry.flag != nil { entries[id] = entry }
        return reply
    }

    mutating func record(announcement: (id: JobID, state: JobState)) { announced.append(announcement) }

    /// Writes to the log and the channel of one job.
    struct Emission {
        let channel: String
        var published: [(channel: String, message: String)] = []

        mutating func emit(_ id: EventID, _ json: String, _ entry: inout Entry) {
            entry.log.append((id, json))
            published.append((channel, json))
        }

        static func compose(_ id: EventID, _ last: EventID, _ fields: String) -> String {
            "{\"id\":\"\(id)\",\"prev\":\"\(last)\",\(fields)}"
        }

        /// Writes the end.
        mutating func conclude(
            _ state: JobState, _ entry: inout Entry, _ fields: String, _ time: Int64, _ more: [(String, String)] = []
        ) {
            let id = entry.last.next
            emit(id, Self.compose(id, entry.last, fields), &entry)
            entry.fields["state"] = state.rawValue
            entry.fields["last"] = id.description
            entry.fields["finished_at"] = String(time)
            entry.fields["lease_until"] = "0"
            for (name, value) in more { entry.fields[name] = value }
        }

        mutating func cancel(_ entry: inout Entry, _ time: Int64, usage: String = "") {
            var fields = "\"type\":\"cancelled\""
            var latency = ""
            if let flag = entry.flag {
                latency = String(time - flag.at)
                fields += ",\"by\":\(JSONValue.string(flag.by).serialized),\"latency_ms\":\(latency)"
            }
            if !usage.isEmpty { fields += ",\"usage\":\(usage)" }
            conclude(
                .cancelled, &entry, fields, time,
                [("cancelled_by", entry.flag?.by ?? ""), ("cancel_latency_ms", latency), ("usage", usage)])
        }
    }
}
