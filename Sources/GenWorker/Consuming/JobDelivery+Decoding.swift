import GenShared

extension JobDelivery {
    init(_ delivery: AMQPDelivery, pool: String, lane: Lane) {
        self.init(
            pool: pool, lane: lane, body: delivery.body, messageID: delivery.messageID, type: delivery.type,
            contentType: delivery.contentType, contentEncoding: delivery.contentEncoding,
            traceParent: delivery.traceParent)
    }

    /// The id that a message without a readable job still names.
    var salvagedID: JobID? {
        if let messageID { return JobID(messageID) }
        // What is no JSON names nothing.
        guard body.count <= 1 << 20, let value = try? JSONParser.parse(body, options: .lenient) else { return nil }
        return value["id"]?.string.flatMap { JobID($0) }
    }

    /// Reads the message.
    /// - Throws: `JobRejection`.
    func decode(_ limits: JobLimits) throws(JobRejection) -> Job {
        if let contentEncoding, !contentEncoding.isEmpty, contentEncoding.lowercased() != "utf-8" {
            throw JobRejection(
                .malformed, field: "content_encoding", reason: "must be empty: nothing is unpacked here")
        }
        if let contentType, !contentType.isEmpty,
            !contentType.lowercased().hasPrefix("application/json")
        {
            throw JobRejection(.malformed, field: "content_type", reason: "must be application/json")
        }
        let job = try Job(body: body, limits: limits, route: (pool, lane))
        if let messageID, messageID != job.id.rawValue {
            throw JobRejection(.badID, field: "id", reason: "is not the message's message_id")
        }
        return job
    }
}
