/// Why a model stopped.
public enum FinishReason: Sendable, Hashable, RawRepresentable {
    /// It was done, or met a stop text.
    case stop
    /// It ran into the token limit.
    case length
    /// The provider's filter stepped in.
    case contentFilter
    /// It asked for a tool, which we do not offer.
    case toolCalls
    /// Another reason, in the backend's own word, of which at most 64 characters are kept.
    case other(String)

    /// Reads the word of an event or of a backend; no word is `stop`.
    public init(rawValue: String) {
        switch rawValue {
        case "stop", "": self = .stop
        case "length": self = .length
        case "content_filter": self = .contentFilter
        case "tool_calls": self = .toolCalls
        // By scalars: one character may have any length.
        default: self = .other(String(String.UnicodeScalarView(rawValue.unicodeScalars.prefix(64))))
        }
    }

    /// The word as it stands in events.
    public var rawValue: String {
        switch self {
        case .stop: "stop"
        case .length: "length"
        case .contentFilter: "content_filter"
        case .toolCalls: "tool_calls"
        case .other(let word): word
        }
    }
}
