import GenShared

/// How a watch shows what it sees.
enum WatchStyle: Sendable {
    /// The text as it comes; a marker stands between the texts of two attempts.
    case text
    /// The result, once, at the end.
    case result
    /// Each event as JSON on a line.
    case json
    /// Only the last event as JSON.
    case jsonEnd
    /// Nothing.
    case silent
}

/// Turns events into what is written.
///
/// Pure: writing is the caller's.
struct WatchRenderer {
    struct Output: Equatable {
        /// For standard output.
        var text = ""
        /// Lines for standard error.
        var notes: [String] = []
    }

    let style: WatchStyle
    let isTerminal: Bool
    private var isAtLineStart = true
    private var hasText = false
    private var toldLoading = false

    /// - Parameter start: the last event that was seen before; its text, too, counts as shown.
    init(style: WatchStyle, isTerminal: Bool, start: EventID = .origin) {
        self.style = style
        self.isTerminal = isTerminal
        // The first event of an attempt carries no text; what follows it may have ended within a line.
        hasText = start > .queued && start.sequence > 1
        isAtLineStart = !hasText
    }

    mutating func render(_ item: WatchItem, id: JobID) -> Output {
        switch item {
        case .historyLost: return historyLost()
        case .event(let event): return render(event, id)
        }
    }

    private mutating func historyLost() -> Output {
        switch style {
        case .json: return Output(text: "{\"type\":\"history_lost\"}\n")
        case .jsonEnd, .silent, .result: return Output()
        case .text:
            defer { (isAtLineStart, hasText) = (true, false) }
            let marker = "[part of the text is lost: it begins again, or later]"
            return Output(text: (isAtLineStart ? "" : "\n") + marker + "\n")
        }
    }

    private mutating func render(_ event: JobEvent, _ id: JobID) -> Output {
        switch style {
        case .silent: return Output()
        case .json: return Output(text: TerminalText.json(event.json, forTerminal: isTerminal) + "\n")
        case .jsonEnd:
            guard event.isTerminal else { return Output() }
            return Output(text: TerminalText.json(event.json, forTerminal: isTerminal) + "\n")
        case .result: return end(event, id, printsResult: true)
        case .text: break
        }
        switch event.content {
        case .chunk(let text): return chunk(text)
        case .started(let attempt, _, _, _, restarted: true): return restart(attempt)
        case .progress(let progress) where progress.phase == .loading && isTerminal:
            defer { toldLoading = true }
            return Output(notes: toldLoading ? [] : ["the model is loading …"])
        case .retrying(let reason, let error, let delay):
            let why = error?.message ?? reason
            // The figure comes from the channel, where anybody may publish anything: it is shown, never converted.
            return Output(notes: [
                TerminalText.line("gendispatcher: the attempt ended (\(why)); the next follows in \(delay) s")
            ])
        default: return end(event, id, printsResult: !hasText)
        }
    }

    private mutating func chunk(_ text: String) -> Output {
        let shown = isTerminal ? TerminalText.safe(text) : text
        guard let last = shown.last else { return Output() }
        hasText = true
        isAtLineStart = last.isNewline
        return Output(text: shown)
    }

    /// The text of the attempt before no longer counts.
    private mutating func restart(_ attempt: Int) -> Output {
        guard hasText else { return Output() }
        let marker = isTerminal ? "[starting over, attempt \(attempt)]" : "[attempt \(attempt) starts over]"
        let text = (isAtLineStart ? "" : "\n") + marker + "\n"
        isAtLineStart = true
        hasText = false
        return Output(text: text)
    }

    private mutating func end(_ event: JobEvent, _ id: JobID, printsResult: Bool) -> Output {
        guard event.isTerminal else { return Output() }
        var output = Output(notes: [EndingLine.text(event.content, id: id)])
        if case .completed(let completion) = event.content, printsResult {
            output.text = isTerminal ? TerminalText.safe(completion.result) : completion.result
            isAtLineStart = output.text.last?.isNewline ?? true
        }
        if !isAtLineStart { output.text += "\n" }
        isAtLineStart = true
        return output
    }
}
