import GenShared

/// Looks up what the records say of dead jobs, and writes messages down.
struct DeadReport: Sendable {
    private let connection: RedisConnection
    private let store: RedisJobStore

    init(_ context: CommandContext) {
        connection = RedisConnection(
            url: context.servers.redis, name: "gendispatcher-dead", scripts: RedisScript.all)
        store = RedisJobStore(connection: connection)
    }

    func close() async { await connection.close() }

    /// - Returns: `nil` where the message names no job, or nothing is known of it any more.
    /// - Throws: `StoreError`.
    func record(_ message: DeadMessage) async throws -> DeadRecord? {
        guard let id = message.jobID, let record = try await store.record(id) else { return nil }
        let crashes = try await store.reply(to: RedisCommand("HGET", JobKeys(id).record, "crashes")).integer
        return DeadRecord(record: record, crashes: Int(clamping: crashes ?? 0))
    }

    /// One line.
    static func line(_ message: DeadMessage, _ record: DeadRecord?, now: Timestamp) -> String {
        var line = "\(message.name) \(message.kind) \(message.route) \(message.reason)"
        if let age = age(message, now) { line += ", \(age) old" }
        line += record.map { ", \(state($0))" } ?? ", no record"
        if !message.error.isEmpty { line += ": \(message.error)" }
        let oneLine = line.split(whereSeparator: \.isNewline).joined(separator: " ")
        return TerminalText.safe(oneLine)
    }

    /// Several lines, with the body.
    static func text(_ message: DeadMessage, _ record: DeadRecord?, now: Timestamp) -> String {
        var lines = [
            "id        \(message.name)", "kind      \(message.kind)", "route     \(message.route)",
            "reason    \(message.reason)", "error     \(message.error)",
            "age       \(age(message, now) ?? "unknown")",
            "record    \(record.map(state) ?? "none")",
        ]
        if case .failure(let rejection) = message.job { lines.append("no job    \(rejection)") }
        lines += ["body      \(message.browsed.body.count) bytes", message.text]
        return TerminalText.safe(lines.joined(separator: "\n"))
    }

    /// One JSON object.
    static func json(_ message: DeadMessage, _ record: DeadRecord?, withBody: Bool) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.member("id", message.name)
        writer.member("kind", message.kind)
        writer.member("route", message.route)
        writer.member("reason", message.reason)
        writer.member("error", message.error)
        writer.member("created_at", ifPresent: message.createdAt?.description)
        writer.member("state", ifPresent: record?.record.state.rawValue)
        writer.member("attempts", ifPresent: record?.record.attempt)
        writer.member("failures", ifPresent: record?.record.failures)
        writer.member("crashes", ifPresent: record?.crashes)
        if withBody {
            // A body that is no JSON is shown as the text that it is.
            if let json = try? JSONParser.parse(message.browsed.body) {
                writer.member("body", json)
            } else {
                writer.member("body_text", message.text)
            }
        }
        writer.endObject()
        return writer.text
    }

    private static func state(_ record: DeadRecord) -> String {
        let attempts = record.record.attempt
        return "\(record.record.state.rawValue) after \(attempts) attempt\(attempts == 1 ? "" : "s") "
            + "(\(record.record.failures) failed, \(record.crashes) crashed)"
    }

    private static func age(_ message: DeadMessage, _ now: Timestamp) -> String? {
        guard let created = message.createdAt else { return nil }
        let seconds = max(0, now.milliseconds - created.milliseconds) / 1000
        switch seconds {
        case ..<60: return "\(seconds) s"
        case ..<3600: return "\(seconds / 60) min"
        case ..<172_800: return "\(seconds / 3600) h"
        default: return "\(seconds / 86_400) d"
        }
    }
}
