import GenShared

extension Terminal {
    /// Writes JSON on one line; on a terminal what that would obey is escaped, since it may come from a model or a
    /// stranger.
    /// - Returns: false when nobody reads it any more.
    @discardableResult
    static func writeJSON(_ json: String) -> Bool {
        write(TerminalText.json(json, forTerminal: isInteractive) + "\n")
    }
}
