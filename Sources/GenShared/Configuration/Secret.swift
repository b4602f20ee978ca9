/// A text that must not turn up anywhere: its description is stars, and reading it takes a word that shows in review.
public struct Secret: Sendable, Equatable, CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    private let text: String

    /// Wraps a secret.
    public init(_ text: String) { self.text = text }

    /// The secret itself, for the one call that needs it.
    package func reveal() -> String { text }

    /// Three stars.
    public var description: String { "***" }
    /// Three stars.
    public var debugDescription: String { "***" }
    /// Nothing to see: `dump` would otherwise print the text.
    public var customMirror: Mirror { Mirror(self, children: []) }
}
