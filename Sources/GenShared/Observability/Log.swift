import Glibc
import Synchronization

/// Structured logs: one JSON object a line on standard error.
///
/// Never model text, never a secret.
package enum Log {
    package enum Level: String, Sendable, CaseIterable {
        case debug
        case info
        case warning
        case error
        /// Nothing at all: for simulations, whose every fault would be logged.
        case none
    }

    private static let threshold = Mutex(Level.info)

    /// Sets the lowest level that is written.
    package static func setLevel(_ level: Level) { threshold.withLock { $0 = level } }

    package static func debug(_ event: String, _ fields: JSONObject = [:]) { write(.debug, event, fields) }
    package static func info(_ event: String, _ fields: JSONObject = [:]) { write(.info, event, fields) }
    package static func warning(_ event: String, _ fields: JSONObject = [:]) { write(.warning, event, fields) }
    package static func error(_ event: String, _ fields: JSONObject = [:]) { write(.error, event, fields) }

    private static func write(_ level: Level, _ event: String, _ fields: JSONObject) {
        guard isEnabled(level) else { return }
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("time", Timestamp.now.description)
        writer.member("level", level.rawValue)
        writer.member("event", event)
        for member in fields.members { writer.member(member.key, member.value) }
        writer.endObject()
        let line = writer.bytes + [UInt8(ascii: "\n")]
        // One write a line, so that lines of several threads do not mix; a closed standard error is nobody's loss.
        _ = line.withUnsafeBytes { Glibc.write(2, $0.baseAddress, $0.count) }
    }

    private static func isEnabled(_ level: Level) -> Bool {
        let all = Level.allCases
        let lowest = threshold.withLock { $0 }
        return (all.firstIndex(of: level) ?? 0) >= (all.firstIndex(of: lowest) ?? 0)
    }
}
