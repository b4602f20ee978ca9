/// One thing that doctor looked at.
struct Finding: Sendable, Equatable {
    enum Severity: Sendable {
        case fine
        case warning
        case fault
    }

    let severity: Severity
    let text: String
    var isUnreachable = false

    static func fine(_ text: String) -> Finding { Finding(severity: .fine, text: text) }
    /// Something that may become a fault, with what mends it.
    static func warning(_ text: String) -> Finding { Finding(severity: .warning, text: text) }
    /// Something that does not work, with what mends it.
    static func fault(_ text: String) -> Finding { Finding(severity: .fault, text: text) }

    var line: String {
        switch severity {
        case .fine: "ok    \(text)"
        case .warning: "WARN  \(text)"
        case .fault: "FAIL  \(text)"
        }
    }
}
