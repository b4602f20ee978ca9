import GenShared

/// A message of the dead queue, as far as it can be read.
struct DeadMessage: Sendable {
    let browsed: AMQPBrowsedMessage
    /// The job that it names; `nil` where it names none.
    let jobID: JobID?
    /// The job, or why the message is none.
    let job: Result<Job, JobRejection>

    init(_ browsed: AMQPBrowsedMessage, limits: JobLimits) {
        self.browsed = browsed
        do throws(JobRejection) {
            job = .success(try Job(body: browsed.body, limits: limits, route: Self.route(browsed.routingKey)))
        } catch { job = .failure(error) }
        jobID = browsed.messageID.flatMap { JobID($0) } ?? Self.id(in: browsed.body)
    }

    /// What a person calls it: the job's id, or the beginning of the body's digest where there is none.
    var name: String { jobID?.rawValue ?? "sha256:\(digest.prefix(12))" }

    /// The same for each copy of one message, whenever it is looked at.
    var digest: String {
        // Without the algorithm no command of ours that needs it gets this far.
        (try? SHA256Digest(of: browsed.body))?.description ?? ""
    }

    var kind: String { (try? job.get())?.kind.rawValue ?? browsed.type ?? "?" }
    var reason: String { browsed.headers["x-gen-reason"] ?? "unknown" }
    var error: String { browsed.headers["x-gen-error"] ?? "" }
    /// Pool and lane.
    var route: String { browsed.routingKey }
    var createdAt: Timestamp? { (try? job.get())?.createdAt }

    /// The body as text; what is no UTF-8 is repaired.
    var text: String { String(decoding: browsed.body, as: UTF8.self) }

    private static func route(_ key: String) -> (pool: String, lane: Lane)? {
        guard let dot = key.lastIndex(of: "."), let lane = Lane(rawValue: String(key[key.index(after: dot)...])) else {
            return nil
        }
        let pool = String(key[..<dot])
        return Job.isPoolName(pool) ? (pool, lane) : nil
    }

    private static func id(in body: [UInt8]) -> JobID? {
        // Broken bodies are what this queue is for: then there is no id.
        guard let json = try? JSONParser.parse(body) else { return nil }
        return json["id"]?.string.flatMap { JobID($0) }
    }
}

/// What the record of a dead message's job says.
struct DeadRecord: Sendable {
    let record: JobRecord
    let crashes: Int
}
