import GenShared

/// Turns the events of a streamed chat completion into ours.
///
/// Lenient where servers differ: unknown members pass, counters may be missing, the end is `[DONE]` or a finish
/// reason. An `error` member is looked for first, also with status 200.
struct ChatStreamDecoder {
    private(set) var finishReason: FinishReason?
    private(set) var usage: Usage?
    private(set) var tokensPerSecond: Double?
    private(set) var isDone = false
    private(set) var pieces = 0
    private(set) var promptTokens: Int?
    private let backend: String

    init(backend: String) { self.backend = backend }

    /// - Throws: `JobFailure` for an error that came instead of text, or data that make no sense.
    mutating func decode(_ data: [UInt8]) throws(JobFailure) -> [GenerationEvent] {
        // What follows the end mark does not count.
        if isDone { return [] }
        if data == Array("[DONE]".utf8) {
            isDone = true
            return []
        }
        let value: JSONValue
        do { value = try JSONParser.parse(data, options: .lenient) } catch {
            throw JobFailure(
                .badReply, "\(backend) sent an event that is \(error)", backend: backend, isRetryable: true)
        }
        if let error = value["error"], error != .null { throw ChatError.failure(error, status: nil, backend: backend) }
        readStatistics(value)
        var events: [GenerationEvent] = []
        if let progress = value["prompt_progress"] { events += promptProgress(progress) }
        // Several choices are never asked for; only the first counts.
        if let choice = value["choices"]?.array?.first(where: { ($0["index"]?.integer ?? 0) == 0 }) {
            events += read(choice)
        }
        return events
    }

    private mutating func read(_ choice: JSONValue) -> [GenerationEvent] {
        var events: [GenerationEvent] = []
        let delta = choice["delta"]
        // llama-server and DeepSeek say reasoning_content, Ollama and others say reasoning.
        for key in ["reasoning_content", "reasoning"] {
            if let text = delta?[key]?.string, !text.isEmpty {
                pieces += 1
                events.append(.reasoning(text))
            }
        }
        if let text = delta?["content"]?.string, !text.isEmpty {
            pieces += 1
            events.append(.text(text))
        }
        if let reason = choice["finish_reason"]?.string, !reason.isEmpty {
            finishReason = FinishReason(rawValue: reason) ?? .stop
        }
        return events
    }

    private mutating func readStatistics(_ value: JSONValue) {
        if let figures = value["usage"], let prompt = figures["prompt_tokens"]?.integer {
            usage = Usage(
                promptTokens: Int(clamping: prompt),
                completionTokens: Int(clamping: figures["completion_tokens"]?.integer ?? 0),
                cachedTokens: Int(clamping: figures["prompt_tokens_details"]?["cached_tokens"]?.integer ?? 0))
        }
        if let speed = value["timings"]?["predicted_per_second"]?.number, speed.isFinite, speed > 0 {
            tokensPerSecond = speed
        }
    }

    private mutating func promptProgress(_ progress: JSONValue) -> [GenerationEvent] {
        guard let total = progress["total"]?.number, let processed = progress["processed"]?.number, total > 0 else {
            return []
        }
        promptTokens = Int(exactly: total.rounded())
        return [.progress(Progress(phase: .prompt, fraction: min(1, max(0, processed / total))))]
    }
}

/// Reads the error objects of OpenAI's API and of those who speak like it.
enum ChatError {
    static func failure(_ error: JSONValue, status: Int?, backend: String) -> JobFailure {
        let message = (error["message"]?.string ?? error.string ?? error.serialized).prefix(500)
        let type = error["type"]?.string ?? ""
        let code = error["code"]?.string ?? ""
        let status = status ?? error["code"]?.integer.map { Int(clamping: $0) } ?? 500
        if type == "exceed_context_size_error" || code == "context_length_exceeded" {
            let figures = (error["n_prompt_tokens"]?.integer, error["n_ctx"]?.integer)
            if case (let prompt?, let context?) = figures {
                return JobFailure(
                    .contextExceeded,
                    "the prompt has \(prompt) tokens, the model's context at \(backend) has \(context): shorten it",
                    backend: backend)
            }
            return JobFailure(.contextExceeded, "\(backend): \(message)", backend: backend)
        }
        switch status {
        case 401, 403:
            return JobFailure(.unauthorized, "\(backend) refuses our key: \(message)", backend: backend)
        case 429 where code == "insufficient_quota":
            return JobFailure(.credits, "\(backend): \(message)", backend: backend)
        case 429: return JobFailure(.rateLimited, "\(backend): \(message)", backend: backend, isRetryable: true)
        case 503: return JobFailure(.unavailable, "\(backend): \(message)", backend: backend, isRetryable: true)
        case 408, 409, 500...:
            return JobFailure(.backendError, "\(backend): \(message)", backend: backend, isRetryable: true)
        default: return JobFailure(.invalidInput, "\(backend): \(message)", backend: backend)
        }
    }

    /// The failure for an answer with an error status and this body.
    static func failure(status: Int, body: [UInt8], backend: String) -> JobFailure {
        // A body that is no JSON, a proxy's page say, is shown as it is, in one line.
        let parsed = try? JSONParser.parse(body, options: .lenient)
        if let error = parsed?["error"], error != .null { return failure(error, status: status, backend: backend) }
        let text = String(decoding: body.prefix(200), as: UTF8.self)
            .split(whereSeparator: \.isWhitespace).joined(separator: " ")
        return failure(.string("status \(status) \(text)"), status: status, backend: backend)
    }
}
