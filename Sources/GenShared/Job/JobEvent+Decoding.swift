extension JobEvent {
    /// Reads an event as it was published.
    ///
    /// Unknown members are ignored and an unknown type is kept as such: newer workers may say more than we know.
    /// - Returns: `nil` for anything that is no event: not JSON, no ids, or a member of the wrong type.
    public init?(json: String) {
        guard let value = try? JSONParser.parse(json, options: .lenient),  // Foreign bytes on a channel: no event.
            let object = value.object, let id = object["id"]?.string.flatMap({ EventID($0) }),
            let previous = object["prev"]?.string.flatMap({ EventID($0) }), let type = object["type"]?.string,
            let content = Content(type: type, object: object)
        else { return nil }
        self.init(id: id, previous: previous, content: content, json: json)
    }
}

extension JobEvent.Content {
    init?(type: String, object: JSONObject) {
        switch type {
        case "queued": self = .queued
        case "expired": self = .expired
        case "started":
            self = .started(
                attempt: Int(clamping: object["attempt"]?.integer ?? 1), worker: object["worker"]?.string ?? "",
                backend: object["backend"]?.string, model: object["model"]?.string,
                restarted: object["restarted"]?.bool ?? false)
        case "chunk":
            guard let text = object["text"]?.string else { return nil }
            self = .chunk(text)
        case "reasoning":
            guard let text = object["text"]?.string else { return nil }
            self = .reasoning(text)
        case "progress":
            guard let phase = object["phase"]?.string.flatMap(Progress.Phase.init(rawValue:)) else {
                self = .unknown(type: type)
                return
            }
            self = .progress(Progress(phase: phase, fraction: object["fraction"]?.number))
        case "retrying":
            self = .retrying(
                reason: object["reason"]?.string ?? "", error: object["error"].flatMap(JobFailure.init(json:)),
                delaySeconds: object["delay_s"]?.number ?? 0)
        case "completed":
            guard let completion = Completion(object: object) else { return nil }
            self = .completed(completion)
        case "failed":
            guard let failure = object["error"].flatMap(JobFailure.init(json:)) else { return nil }
            self = .failed(failure, partial: object["usage"].flatMap(Usage.init(json:)))
        case "cancelled":
            self = .cancelled(
                by: object["by"]?.string,
                latencyMilliseconds: object["latency_ms"]?.integer.map { Int(clamping: $0) },
                partial: object["usage"].flatMap(Usage.init(json:)))
        default: self = .unknown(type: type)
        }
    }
}

extension Usage {
    package init?(json: JSONValue) {
        guard let prompt = json["prompt_tokens"]?.integer, let completion = json["completion_tokens"]?.integer else {
            return nil
        }
        self.init(
            promptTokens: Int(clamping: prompt), completionTokens: Int(clamping: completion),
            cachedTokens: Int(clamping: json["cached_tokens"]?.integer ?? 0),
            isEstimated: json["estimated"]?.bool ?? false)
    }
}

extension JobFailure {
    package init?(json: JSONValue) {
        guard let message = json["message"]?.string else { return nil }
        self.init(
            json["code"]?.string.flatMap(Code.init(rawValue:)) ?? .internal, message,
            backend: json["backend"]?.string, isRetryable: json["retryable"]?.bool ?? false)
    }
}

extension Completion {
    init?(object: JSONObject) {
        guard let result = object["result"]?.string else { return nil }
        let stats = object["stats"]
        self.init(
            result: result,
            finishReason: FinishReason(rawValue: object["finish_reason"]?.string ?? ""),
            usage: object["usage"].flatMap(Usage.init(json:)),
            stats: Stats(
                queueMilliseconds: Int(clamping: stats?["queue_ms"]?.integer ?? 0),
                firstTokenMilliseconds: stats?["ttft_ms"]?.integer.map { Int(clamping: $0) },
                totalMilliseconds: Int(clamping: stats?["total_ms"]?.integer ?? 0),
                tokensPerSecond: stats?["tokens_per_second"]?.number))
    }
}
