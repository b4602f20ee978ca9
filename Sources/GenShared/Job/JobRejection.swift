/// Why a message is no job that we run.
public struct JobRejection: Error, Sendable, Equatable, CustomStringConvertible {
    /// The reason's class, as it stands in the dead queue.
    public enum Code: String, Sendable {
        /// Not JSON, or not of the message's shape.
        case malformed
        /// A version that this program does not know.
        case unsupportedVersion = "unsupported_version"
        /// The id is missing, not allowed, or not the message's own.
        case badID = "bad_id"
        /// A value that is out of its limits.
        case invalidInput = "invalid_input"
    }

    /// The reason's class.
    public let code: Code
    /// The member at fault, such as `options.max_tokens`; empty for the whole.
    public let field: String
    /// What is wrong with it, and what would be right.
    public let reason: String

    /// A rejection.
    public init(_ code: Code, field: String = "", reason: String) {
        self.code = code
        self.field = field
        self.reason = reason
    }

    /// One line for a person.
    public var description: String { field.isEmpty ? reason : "\(field): \(reason)" }
}
