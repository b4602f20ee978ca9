extension Job {
    /// Reads a message's body.
    /// - Parameters:
    ///   - body: JSON in UTF-8.
    ///   - limits: the bounds to enforce.
    ///   - route: pool and lane of the queue it came from, which win over the body's own.
    /// - Throws: `JobRejection` that names the member at fault.
    public init(
        body: [UInt8], limits: JobLimits = JobLimits(), route: (pool: String, lane: Lane)? = nil
    ) throws(JobRejection) {
        guard body.count <= limits.bodyBytes else {
            throw JobRejection(
                .malformed, reason: "the body has \(body.count) bytes, \(limits.bodyBytes) are allowed")
        }
        let value: JSONValue
        do { value = try JSONParser.parse(body) } catch { throw JobRejection(.malformed, reason: error.description) }
        guard let object = value.object else {
            throw JobRejection(.malformed, reason: "the body is \(value.kindName), not an object")
        }
        try self.init(fields: JSONFields(object), limits: limits, route: route)
    }

    private init(
        fields: JSONFields, limits: JobLimits, route: (pool: String, lane: Lane)?
    ) throws(JobRejection) {
        guard let version = try fields.integer("v") else {
            throw JobRejection(.unsupportedVersion, field: "v", reason: "is missing; this program reads version 1")
        }
        guard version == Self.version else {
            throw JobRejection(.unsupportedVersion, field: "v", reason: "is \(version); this program reads version 1")
        }
        guard let idText = try fields.string("id") else {
            throw JobRejection(.badID, field: "id", reason: "is missing")
        }
        guard let id = JobID(idText) else {
            throw JobRejection(.badID, field: "id", reason: "must be 1 to 64 letters, digits, _ or -")
        }
        guard let kindText = try fields.string("kind") else {
            throw JobRejection(.malformed, field: "kind", reason: "is missing")
        }
        guard let kind = JobKind(rawValue: kindText) else {
            let known = JobKind.allCases.map(\.rawValue).joined(separator: ", ")
            throw JobRejection(.invalidInput, field: "kind", reason: "is not one of \(known)")
        }
        guard let inputFields = try fields.fields("input") else {
            throw JobRejection(.malformed, field: "input", reason: "is missing")
        }
        self.init(id: id, kind: kind, input: try JobInput(fields: inputFields, kind: kind, limits: limits))
        if let optionFields = try fields.fields("options") {
            options = try GenerationOptions(fields: optionFields, limits: limits)
        }
        try readRouting(fields, route)
        createdAt = try fields.timestamp("created_at")
        expiresAt = try fields.timestamp("expires_at")
        timeoutSeconds =
            try fields.integer("timeout_s", in: 1...limits.maxTimeoutSeconds) ?? limits.defaultTimeoutSeconds
        tenant = try fields.string("tenant", bytes: 1...64) ?? "default"
        metadata = try fields.fields("metadata")?.object ?? JSONObject()
    }

    private mutating func readRouting(
        _ fields: JSONFields, _ route: (pool: String, lane: Lane)?
    ) throws(JobRejection) {
        if let laneText = try fields.string("lane") {
            guard let lane = Lane(rawValue: laneText) else {
                throw JobRejection(.invalidInput, field: "lane", reason: "is not interactive or batch")
            }
            self.lane = lane
        }
        if let pool = try fields.string("pool") {
            guard Job.isPoolName(pool) else {
                throw JobRejection(
                    .invalidInput, field: "pool", reason: "must be 1 to 32 letters, digits, _ or -")
            }
            self.pool = pool
        }
        if let route { (pool, lane) = (route.pool, route.lane) }
    }
}

extension JobInput {
    init(fields: JSONFields, kind: JobKind, limits: JobLimits) throws(JobRejection) {
        guard let text = try fields.string("text") else {
            throw JobRejection(.malformed, field: "input.text", reason: "is missing")
        }
        guard text.contains(where: { !$0.isWhitespace }) else {
            throw JobRejection(.invalidInput, field: "input.text", reason: "is empty")
        }
        self.init(text: text)
        style = try fields.string("style", bytes: 1...256)
        schema = fields.object["schema"].flatMap { $0 == .null ? nil : $0 }
        if let schema, schema.object == nil {
            throw JobRejection(.invalidInput, field: "input.schema", reason: "must be a JSON Schema, an object")
        }
        messages = try Self.messages(fields, limits)
        let total = messages.reduce(text.utf8.count) { $0 + $1.content.utf8.count }
        guard total <= limits.promptBytes else {
            throw JobRejection(
                .invalidInput, field: "input",
                reason: "text and messages have \(total) bytes, \(limits.promptBytes) are allowed")
        }
        if kind == .image { image = try ImageParameters(fields: fields, limits: limits) }
    }

    private static func messages(_ fields: JSONFields, _ limits: JobLimits) throws(JobRejection)
        -> [ConversationMessage]
    {
        guard let turns = try fields.array("messages") else { return [] }
        guard turns.count <= limits.messages else {
            throw JobRejection(
                .invalidInput, field: "input.messages",
                reason: "has \(turns.count) turns, \(limits.messages) are allowed")
        }
        var messages: [ConversationMessage] = []
        for (index, turn) in turns.enumerated() {
            let path = "input.messages[\(index)]"
            guard let object = turn.object else {
                throw JobRejection(.malformed, field: path, reason: "is \(turn.kindName), not an object")
            }
            let turnFields = JSONFields(object, path: path)
            guard let role = try turnFields.string("role").flatMap(ConversationMessage.Role.init(rawValue:)) else {
                throw JobRejection(
                    .invalidInput, field: "\(path).role", reason: "must be system, user or assistant")
            }
            guard let content = try turnFields.string("content") else {
                throw JobRejection(.malformed, field: "\(path).content", reason: "is missing")
            }
            messages.append(ConversationMessage(role: role, content: content))
        }
        return messages
    }
}

extension ImageParameters {
    init(fields: JSONFields, limits: JobLimits) throws(JobRejection) {
        self.init()
        width = try fields.integer("width", in: limits.imageSide) ?? width
        height = try fields.integer("height", in: limits.imageSide) ?? height
        guidanceScale = try fields.number("guidance_scale", in: 0...50) ?? guidanceScale
        inferenceSteps = try fields.integer("num_inference_steps", in: 1...150) ?? inferenceSteps
        seed = try fields.integer("seed", in: 0...4_294_967_295)
        count = try fields.integer("count", in: 1...limits.imageCount) ?? count
    }
}

extension GenerationOptions {
    init(fields: JSONFields, limits: JobLimits) throws(JobRejection) {
        self.init()
        temperature = try fields.number("temperature", in: 0...2)
        topP = try fields.number("top_p", in: 0.01...1)
        minP = try fields.number("min_p", in: 0...1)
        repeatPenalty = try fields.number("repeat_penalty", in: 0.01...2)
        maxTokens = try fields.integer("max_tokens", in: 1...limits.maxTokens)
        seed = try fields.integer("seed", in: 0...4_294_967_295)
        model = try fields.string("model", bytes: 1...128)
        thinking = try fields.bool("thinking")
        switch fields.object["stop"] {
        case .string(let single)?: stop = [single]
        case .none, .null?: break
        default:
            let list = try fields.array("stop") ?? []
            stop = list.compactMap(\.string)
            guard stop.count == list.count else {
                throw JobRejection(.invalidInput, field: fields.place("stop"), reason: "must hold strings only")
            }
        }
        guard stop.count <= 8, stop.allSatisfy({ (1...256).contains($0.utf8.count) }) else {
            throw JobRejection(
                .invalidInput, field: fields.place("stop"), reason: "may hold 8 texts of 1 to 256 bytes")
        }
    }
}
