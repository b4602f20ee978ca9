/// What a job asks for.
public enum JobKind: String, Sendable, CaseIterable {
    /// One catchy line for a business.
    case slogan
    /// A draft in another style.
    case rewrite
    /// An answer to a message that somebody sent.
    case reply
    /// Pictures for a prompt.
    case image

    /// The pool that serves this kind unless the job names another.
    public var defaultPool: String { self == .image ? "image" : "text" }
}

/// How urgent a job is: a person waits for `interactive`, nobody waits for `batch`.
public enum Lane: String, Sendable, CaseIterable {
    /// Served first; may push a batch job out of its slot.
    case interactive
    /// Served by slots that nobody else wants.
    case batch
}
