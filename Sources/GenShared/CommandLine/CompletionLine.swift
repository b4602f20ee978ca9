/// The line under a finished text: tokens, speed, times.
package enum CompletionLine {
    package static func text(_ completion: Completion) -> String {
        var parts: [String] = []
        if let usage = completion.usage {
            let about = usage.isEstimated ? "about " : ""
            parts.append("\(about)\(usage.promptTokens) prompt + \(usage.completionTokens) completion tokens")
        }
        if let speed = completion.stats.tokensPerSecond { parts.append("\(rounded(speed)) tokens/s") }
        if let first = completion.stats.firstTokenMilliseconds { parts.append("first text after \(first) ms") }
        parts.append("queued \(completion.stats.queueMilliseconds) ms")
        parts.append("total \(completion.stats.totalMilliseconds) ms")
        switch completion.finishReason {
        case .stop: break
        case .length: parts.append("cut at the token limit")
        case .contentFilter: parts.append("cut by the provider's filter")
        case .toolCalls: parts.append("the model asked for a tool")
        case .other(let word): parts.append("ended with \(TerminalText.line(word))")
        }
        return "[\(parts.joined(separator: ", "))]"
    }

    private static func rounded(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
}
