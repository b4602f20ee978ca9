extension JobEvent {
    /// An event with its JSON.
    public init(id: EventID, previous: EventID, content: Content) {
        self.init(
            id: id, previous: previous, content: content,
            json: Self.json(id: id, previous: previous, fields: content.fields))
    }

    /// The line for an id, the id before it, and the members that `Content.fields` made.
    package static func json(id: EventID, previous: EventID, fields: String) -> String {
        "{\"id\":\"\(id)\",\"prev\":\"\(previous)\",\(fields)}"
    }
}

extension JobEvent.Content {
    /// The event's type, as it stands in the JSON.
    public var type: String {
        switch self {
        case .queued: "queued"
        case .started: "started"
        case .chunk: "chunk"
        case .reasoning: "reasoning"
        case .progress: "progress"
        case .retrying: "retrying"
        case .completed: "completed"
        case .failed: "failed"
        case .cancelled: "cancelled"
        case .expired: "expired"
        case .unknown(let type): type
        }
    }

    /// The members of the event beside `id` and `prev`, without braces: the scripts that choose the id put them
    /// behind it.
    package var fields: String {
        var writer = JSONWriter()
        writer.member("type", type)
        switch self {
        case .queued, .expired, .unknown: break
        case .started(let attempt, let worker, let backend, let model, let restarted):
            writer.member("attempt", attempt)
            writer.member("worker", worker)
            writer.member("backend", ifPresent: backend)
            writer.member("model", ifPresent: model)
            if restarted { writer.member("restarted", .bool(true)) }
        case .chunk(let text), .reasoning(let text):
            writer.member("text", text)
        case .progress(let progress):
            writer.member("phase", progress.phase.rawValue)
            writer.member("fraction", ifPresent: progress.fraction)
        case .retrying(let reason, let error, let delaySeconds):
            writer.member("reason", reason)
            if let error {
                writer.key("error")
                error.write(to: &writer)
            }
            writer.member("delay_s", ifPresent: delaySeconds)
        case .completed(let completion):
            completion.write(to: &writer)
        case .failed(let failure, let partial):
            writer.key("error")
            failure.write(to: &writer)
            if let partial { partial.write(to: &writer) }
        case .cancelled(let by, let latencyMilliseconds, let partial):
            writer.member("by", ifPresent: by)
            writer.member("latency_ms", ifPresent: latencyMilliseconds)
            if let partial { partial.write(to: &writer) }
        }
        return writer.text
    }
}

extension Usage {
    /// The usage as one JSON object.
    package var json: String {
        var writer = JSONWriter()
        writeObject(to: &writer)
        return writer.text
    }

    /// Writes the member `usage`.
    func write(to writer: inout JSONWriter) {
        writer.key("usage")
        writeObject(to: &writer)
    }

    private func writeObject(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("prompt_tokens", promptTokens)
        writer.member("completion_tokens", completionTokens)
        writer.member("cached_tokens", cachedTokens)
        writer.member("total_tokens", totalTokens)
        writer.member("estimated", .bool(isEstimated))
        writer.endObject()
    }
}

extension JobFailure {
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("code", code.rawValue)
        writer.member("message", message)
        writer.member("backend", ifPresent: backend)
        writer.member("retryable", .bool(isRetryable))
        writer.endObject()
    }

    /// The failure as one JSON object.
    package var json: String {
        var writer = JSONWriter()
        write(to: &writer)
        return writer.text
    }
}

extension Completion {
    func write(to writer: inout JSONWriter) {
        writer.member("result", result)
        writer.member("finish_reason", finishReason.rawValue)
        if let usage { usage.write(to: &writer) }
        writer.key("stats")
        stats.write(to: &writer)
    }
}

extension Stats {
    func write(to writer: inout JSONWriter) {
        writer.beginObject()
        writer.member("queue_ms", queueMilliseconds)
        writer.member("ttft_ms", ifPresent: firstTokenMilliseconds)
        writer.member("total_ms", totalMilliseconds)
        writer.member("tokens_per_second", ifPresent: tokensPerSecond)
        writer.endObject()
    }

    /// The times as one JSON object.
    package var json: String {
        var writer = JSONWriter()
        write(to: &writer)
        return writer.text
    }
}
