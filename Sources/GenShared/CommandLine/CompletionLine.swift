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
        if completion.finishReason == .length { parts.append("cut at the token limit") }
        return "[\(parts.joined(separator: ", "))]"
    }

    private static func rounded(_ value: Double) -> String { "\((value * 10).rounded() / 10)" }
}
