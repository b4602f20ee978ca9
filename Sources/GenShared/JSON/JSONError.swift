/// Why bytes are no JSON that we accept.
public struct JSONError: Error, Sendable, Equatable, CustomStringConvertible {
    /// Where the first byte stands that does not fit, counted from 0.
    public let offset: Int
    /// What is wrong there, as a sentence's end.
    public let reason: String

    /// One line for a person.
    public var description: String { "not valid JSON at byte \(offset): \(reason)" }
}
