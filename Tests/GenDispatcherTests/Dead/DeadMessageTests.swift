import GenShared
import Testing

@testable import GenDispatcher

/// What can be told of dead messages, and how they are chosen and made anew.
@Suite("Dead messages")
struct DeadMessageTests {
    private func message(_ body: String, id: String? = nil, reason: String? = nil) -> DeadMessage {
        var browsed = AMQPBrowsedMessage(tag: 1, routingKey: "large.batch", messageID: id, type: nil)
        browsed.headers["x-gen-reason"] = reason
        browsed.body = Array(body.utf8)
        return DeadMessage(browsed, limits: JobLimits())
    }

    private let body =
        #"{"v":1,"id":"old","kind":"reply","input":{"text":"x"},"metadata":{"a":1},"expires_at":"2026-01-01T00:00:00Z"}"#

    private func selection(_ words: String...) throws -> DeadSelection {
        try DeadSelection(Arguments(words, DeadDropCommand.specification))
    }

    @Test("a message is called by its id, by the id in its body, or by its digest")
    func names() {
        #expect(message(body, id: "outer").name == "outer")
        #expect(message(body, id: "no id!").name == "old")
        #expect(message("nonsense").name.hasPrefix("sha256:"))
        #expect(message("nonsense").name == message("nonsense").name)
        #expect(message("nonsense").name != message("other nonsense").name)
    }

    @Test("a replayed job is the same but for its id, its times and what it replays; the route wins over the body")
    func replay() throws {
        let job = try message(body).job.get()
        let copy = DeadReplayCommand.replay(of: job)
        #expect(copy.id != job.id && copy.expiresAt == nil && copy.createdAt != nil)
        #expect(copy.metadata["replay_of"]?.string == "old" && copy.metadata["a"] != nil)
        #expect(copy.pool == "large" && copy.lane == .batch && copy.input == job.input)
    }

    @Test("copies of one message share a key that fits, others have their own")
    func keys() throws {
        let options = DeadReplayCommand.options(message(body))
        #expect(options.idempotencyKey == DeadReplayCommand.options(message(body)).idempotencyKey)
        #expect(options.idempotencyKey != DeadReplayCommand.options(message(body + " ")).idempotencyKey)
        let longest = DeadReplayCommand.options(message(body, id: String(repeating: "i", count: 64)))
        #expect(throws: Never.self) { try longest.check() }
    }

    @Test("messages are chosen by id, by reason or altogether, one way at a time")
    func selections() throws {
        let dead = message(body, reason: "malformed")
        #expect(try selection("old", "another").contains(dead))
        #expect(try !selection("another").contains(dead))
        #expect(try selection("--reason", "malformed").contains(dead))
        #expect(try !selection("--reason", "timeout").contains(dead))
        #expect(try selection("--all").contains(dead))
        for words in [[], ["old", "--all"], ["--all", "--reason", "x"], ["a b"]] as [[String]] {
            #expect(throws: UsageError.self) {
                try DeadSelection(Arguments(words, DeadDropCommand.specification))
            }
        }
    }

    @Test("dead is what failed, or what nothing is known of; what is no job is dead whatever id it claims")
    func standing() throws {
        let id = try #require(JobID("old"))
        for state in JobState.allCases {
            let record = try #require(JobRecord(id: id, fields: ["state": state.rawValue]))
            let standing = DeadStanding(message(body), record)
            #expect(standing == (state == .failed ? .dead : state.isTerminal ? .over(state) : .open(state)))
            #expect((standing.note == nil) == (state == .failed))
            #expect(DeadStanding(message(#"{"v":9,"id":"old"}"#), record) == .dead)
        }
        #expect(DeadStanding(message(body), nil) == .dead)
    }

    @Test("a line of the list stays one line, and harmless on a terminal")
    func line() {
        var browsed = AMQPBrowsedMessage(tag: 1, routingKey: "text.batch", messageID: "a", type: "reply")
        browsed.headers = ["x-gen-reason": "timeout", "x-gen-error": "one\ntwo \u{1B}[31m"]
        let line = DeadReport.line(DeadMessage(browsed, limits: JobLimits()), nil, now: .now)
        #expect(line == "a reply text.batch timeout, no record: one two [31m")
    }
}
