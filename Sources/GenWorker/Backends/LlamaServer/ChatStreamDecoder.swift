import GenShared

/// Turns the events of a streamed chat completion into ours.
///
/// Lenient where servers differ: unknown members pass, counters may be missing, the end is `[DONE]` or a finish
/// reason. Strict where text could be lost: what should carry it and has another form fails the attempt. An `error`
/// member is looked for first, also with status 200.
struct ChatStreamDecoder {
    /// What a server should not do and we can live with; told once for a stream.
    enum Oddity: String, Sendable {
        case otherChoices = "other_choices"
        case dataAfterEnd = "data_after_end"
        case brokenText = "broken_text"
        case otherFinishReason = "other_finish_reason"
    }

    private(set) var finishReason: FinishReason?
    private(set) var usage: Usage?
    private(set) var tokensPerSecond: Double?
    private(set) var isDone = false
    private(set) var pieces = 0
    private(set) var promptTokens: Int?
    private(set) var oddities: Set<Oddity> = []
    private let backend: String
    private var content = TextJoiner()
    private var reasoning = TextJoiner()

    init(backend: String) { self.backend = backend }

    /// - Throws: `JobFailure` for an error that came instead of text, or data that make no sense.
    mutating func decode(_ data: [UInt8]) throws(JobFailure) -> [GenerationEvent] {
        // What follows the end mark does not count.
        if isDone {
            oddities.insert(.dataAfterEnd)
            return []
        }
        if data == Array("[DONE]".utf8) {
            isDone = true
            return finish()
        }
        let value: JSONValue
        do { value = try JSONParser.parse(data, options: .pieces) } catch { throw bad("an event that is \(error)") }
        guard value.object != nil else { throw bad("an event that is \(value.kindName), not an object") }
        if let error = value["error"], error != .null { throw failure(data) }
        readStatistics(value)
        var events: [GenerationEvent] = []
        if let progress = value["prompt_progress"] { events += promptProgress(progress) }
        if let choice = try firstChoice(value) { events += try read(choice) }
        return events
    }

    /// What is left of a character that was never completed; called at the end of the stream.
    mutating func finish() -> [GenerationEvent] {
        let rests = [GenerationEvent.reasoning(reasoning.finish()), .text(content.finish())]
        if content.hasReplaced || reasoning.hasReplaced { oddities.insert(.brokenText) }
        return rests.filter { $0 != .text("") && $0 != .reasoning("") }
    }

    /// Several choices are never asked for; only the first counts.
    private mutating func firstChoice(_ value: JSONValue) throws(JobFailure) -> JSONValue? {
        guard let list = value["choices"], list != .null else { return nil }
        guard let choices = list.array else { throw bad("`choices` as \(list.kindName)") }
        var first: JSONValue?
        for choice in choices {
            guard choice.object != nil else { throw bad("a choice as \(choice.kindName)") }
            let index = choice["index"] ?? .null
            guard let number = index == .null ? 0 : index.integer else { throw bad("an index as \(index.kindName)") }
            guard number == 0, first == nil else {
                oddities.insert(.otherChoices)
                continue
            }
            first = choice
        }
        return first
    }

    private mutating func read(_ choice: JSONValue) throws(JobFailure) -> [GenerationEvent] {
        var events: [GenerationEvent] = []
        let delta = choice["delta"] ?? .null
        guard delta == .null || delta.object != nil else { throw bad("a delta as \(delta.kindName)") }
        // llama-server and DeepSeek say reasoning_content, Ollama and others say reasoning.
        for key in ["reasoning_content", "reasoning"] {
            if let piece = try text(delta, key) {
                pieces += 1
                let whole = reasoning.feed(piece)
                if !whole.isEmpty { events.append(.reasoning(whole)) }
            }
        }
        if let piece = try text(delta, "content") {
            pieces += 1
            let whole = content.feed(piece)
            if !whole.isEmpty { events.append(.text(whole)) }
        }
        if let word = try text(choice, "finish_reason") {
            let reason = FinishReason(rawValue: CarriedBytes.repaired(word))
            if case .other = reason { oddities.insert(.otherFinishReason) }
            finishReason = reason
        }
        return events
    }

    /// A text that is there and not empty; anything but a text there would be a piece that is lost.
    private func text(_ object: JSONValue, _ key: String) throws(JobFailure) -> String? {
        guard let value = object[key], value != .null else { return nil }
        guard let text = value.string else { throw bad("`\(key)` as \(value.kindName)") }
        return text.isEmpty ? nil : text
    }

    private mutating func readStatistics(_ value: JSONValue) {
        if let figures = value["usage"], let prompt = figures["prompt_tokens"]?.integer {
            func count(_ figure: Int64?) -> Int { Int(clamping: max(0, figure ?? 0)) }
            usage = Usage(
                promptTokens: count(prompt), completionTokens: count(figures["completion_tokens"]?.integer),
                cachedTokens: count(figures["prompt_tokens_details"]?["cached_tokens"]?.integer))
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

    private func bad(_ what: String) -> JobFailure {
        JobFailure(.badReply, "\(backend) sent \(what)", backend: backend, isRetryable: true)
    }

    /// The error is read anew with its text repaired, since nobody joins it with anything.
    private func failure(_ data: [UInt8]) -> JobFailure {
        let error = (try? JSONParser.parse(data, options: .lenient))?["error"]  // Parsed a moment ago.
        return ChatError.failure(error ?? .string("an error"), status: nil, backend: backend)
    }
}
