import GenShared
import GenTestSupport
import Testing

/// The checker finds what it is there to find: histories made by hand, each with one thing wrong.
@Suite("History checker")
struct CheckerTests {
    /// A good history of one job: two pieces, one watcher, one end.
    private static let log = [
        #"{"id":"1-1","prev":"0-1","type":"started","attempt":1,"worker":"w"}"#,
        #"{"id":"1-2","prev":"1-1","type":"chunk","text":"ab"}"#,
        #"{"id":"1-3","prev":"1-2","type":"chunk","text":"cd"}"#,
        end("1-4", "1-3", "abcd"),
    ]
    private static let queued = #"{"id":"0-1","prev":"0-0","type":"queued"}"#

    private static func end(_ id: String, _ previous: String, _ result: String) -> String {
        #"{"id":"\#(id)","prev":"\#(previous)","type":"completed","result":"\#(result)","finish_reason":"stop"}"#
    }

    private static func final(
        state: String = "completed", attempt: Int = 1, result: String? = "abcd", log: [String] = log
    ) -> HistoryEntry {
        .final(.init(job: "j", state: state, attempt: attempt, result: result, log: log))
    }

    private static func view(_ events: [String?], end: HistoryEntry.ViewEnd = .ended) -> HistoryEntry {
        .viewed(.init(watcher: "w", job: "j", from: .origin, events: events, end: end))
    }

    private static let accepted = HistoryEntry.submitted(job: "j", .accepted, expected: "abcd")
    private static let wholeView = view([queued] + log)

    private func violations(
        _ entries: [HistoryEntry], _ rules: HistoryChecker.Rules = HistoryChecker.Rules()
    ) -> Set<String> {
        var checker = HistoryChecker(rules)
        // Through the file's form, so that nothing is lost there.
        for entry in entries { HistoryEntry(json: entry.json(at: 1)).map { checker.take($0) } }
        checker.finish()
        return Set(checker.violations.map(\.invariant))
    }

    @Test("a good history has no violation")
    func good() {
        let entries = [
            Self.accepted, Self.wholeView, Self.final(), .done(job: "j", state: "completed"),
            .queue(name: "q", messages: 0),
        ]
        #expect(violations(entries) == [])
    }

    @Test("an accepted job that has not ended, or is gone, is lost: I1; one of unknown outcome is not")
    func lost() {
        #expect(violations([Self.accepted, Self.final(state: "running", log: [])]) == ["I1"])
        #expect(violations([Self.accepted]) == ["I1"])
        #expect(violations([.submitted(job: "j", .unknown, expected: nil)]) == [])
        #expect(violations([.submitted(job: "j", .refused, expected: nil), Self.final()]) == ["I1"])
        #expect(violations([Self.accepted, Self.final(state: "failed", result: nil, log: [])]).contains("I1"))
    }

    @Test("two ends, in the log, in views or in gen:done: I2")
    func twoEnds() {
        let second = Self.end("1-5", "1-4", "abcd")
        #expect(violations([Self.accepted, Self.final(log: Self.log + [second])]).contains("I2"))
        #expect(violations([Self.view([Self.queued] + Self.log + [second])]).contains("I2"))
        let other = Self.view([Self.queued] + Self.log.dropLast() + [Self.end("1-4", "1-3", "other")])
        #expect(violations([Self.wholeView, other]).contains("I2"))
        #expect(violations([.done(job: "j", state: "completed"), .done(job: "j", state: "failed")]) == ["I2"])
        #expect(violations([Self.final(), .done(job: "j", state: "failed")]) == ["I2"])
    }

    @Test("a result that is not what was said, or not what was shown: I3")
    func wrongResult() {
        #expect(violations([Self.accepted, Self.final(result: "abc")]) == ["I3"])
        let log = Self.log.dropLast() + [Self.end("1-4", "1-3", "abcde")]
        #expect(violations([Self.final(log: Array(log))]) == ["I3"])
        #expect(violations([Self.final(log: [Self.log[0], Self.log[2], Self.log[3]])]) == ["I3"])
    }

    @Test("an event of an attempt after one of a later attempt: I4; anything after the end: I8")
    func stale() {
        let late = #"{"id":"1-9","prev":"2-1","type":"chunk","text":"x"}"#
        let restart = #"{"id":"2-1","prev":"1-3","type":"started","attempt":2,"worker":"w"}"#
        #expect(violations([Self.final(state: "running", log: Self.log.dropLast() + [restart, late])]) == ["I4"])
        let after = #"{"id":"2-1","prev":"1-4","type":"started","attempt":2,"worker":"w"}"#
        #expect(violations([Self.final(log: Self.log + [after])]) == ["I8"])
        #expect(violations([Self.accepted, Self.final(attempt: 9)]) == ["I8"])
    }

    @Test("attempts that were given back count unless the scenario forgives them; more than three preemptions never do")
    func releases() {
        func log(_ reasons: [String]) -> [String] {
            var lines: [String] = []
            var previous = "0-1"
            for (index, reason) in reasons.enumerated() {
                let attempt = index + 1
                lines.append(
                    #"{"id":"\#(attempt)-1","prev":"\#(previous)","type":"started","attempt":\#(attempt),"worker":"w"}"#
                )
                lines.append(#"{"id":"\#(attempt)-2","prev":"\#(attempt)-1","type":"retrying","reason":"\#(reason)"}"#)
                previous = "\(attempt)-2"
            }
            return lines
        }
        func final(_ reasons: [String]) -> HistoryEntry {
            Self.final(state: "retrying", attempt: reasons.count, result: nil, log: log(reasons))
        }
        var forgiving = HistoryChecker.Rules.attempts(1)
        #expect(violations([final(["shutdown", "failure"])], forgiving) == ["I8"])
        forgiving.forgivesReleases = true
        #expect(violations([final(["shutdown", "failure"])], forgiving) == [])
        #expect(violations([final(["failure", "failure"])], forgiving) == ["I8"])
        #expect(violations([final(["preempted", "preempted", "preempted"])], forgiving) == [])
        #expect(violations([final(Array(repeating: "preempted", count: 4))], forgiving) == ["I8"])
    }

    @Test("a gap, a double, another text under the same id, a lost end or a lost-history marker in a view: I5")
    func views() {
        let all = [Self.queued] + Self.log
        #expect(violations([Self.view([all[0], all[1], all[3], all[4]])]) == ["I5"])
        #expect(violations([Self.view([all[0], all[1], all[2], all[2], all[3], all[4]])]) == ["I5"])
        #expect(violations([Self.view(Array(all.dropLast()))]) == ["I5"])
        #expect(violations([Self.view([all[0], all[1], nil, all[3], all[4]])]) == ["I5"])
        var lossy = HistoryChecker.Rules()
        lossy.mayLoseHistory = true
        #expect(violations([Self.view([all[0], all[1], nil, all[3], all[4]])], lossy) == [])
        let other = #"{"id":"1-2","prev":"1-1","type":"chunk","text":"xx"}"#
        #expect(violations([Self.wholeView, Self.view([all[0], all[1], other, all[3], all[4]])]) == ["I5"])
        #expect(violations([Self.final(), Self.view([all[0], all[1], other], end: .stopped)]) == ["I5"])
        #expect(violations([Self.view(Array(all.dropLast()), end: .stopped)]) == [])
    }

    @Test("a message that is left over: I6; a cancel that took and is not the end: I7")
    func leftOver() {
        #expect(violations([.queue(name: "q", messages: 1)]) == ["I6"])
        #expect(violations([.cancelled(job: "j", reply: "cancelled"), Self.final()]) == ["I7"])
        #expect(violations([.cancelled(job: "j", reply: "flagged"), Self.final()]) == [])
    }
}
