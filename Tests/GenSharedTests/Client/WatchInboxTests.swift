import GenTestSupport
import Testing

@testable import GenShared

@Suite("Watch inbox", .timeLimit(.minutes(1)))
struct WatchInboxTests {
    private let inbox = WatchInbox()
    private let later = ContinuousClock.now + .seconds(3600)

    private func words(_ signals: [WatchInbox.Signal]) -> [String] {
        signals.map { signal in
            switch signal {
            case .silence: "silence"
            case .channel(.message(let text)): text
            case .channel: "channel"
            }
        }
    }

    @Test("what was posted before is taken at once, in order, and only once")
    func order() async {
        for number in 0..<5 { inbox.post(.channel(.message("\(number)"))) }
        #expect(words(await inbox.take(deadline: later)) == ["0", "1", "2", "3", "4"])
        inbox.post(.channel(.message("5")))
        #expect(words(await inbox.take(deadline: later)) == ["5"])
    }

    @Test("a post wakes who waits")
    func wakes() async {
        async let taken = inbox.take(deadline: later)
        inbox.post(.channel(.message("a")))
        #expect(words(await taken) == ["a"])
    }

    @Test("silence is a signal once the deadline has passed")
    func silence() async {
        let taken = Journal<[String]>()
        let task = Task { taken.append(words(await inbox.take(deadline: later))) }
        // There is no deadline to pass before the waiting has begun.
        while taken.count == 0, !Task.isCancelled {
            inbox.tick(later)
            await Task.yield()
        }
        await task.value
        #expect(taken.elements == [["silence"]])
        // Nobody waits any more: no deadline is left.
        inbox.tick(later + .seconds(1))
        inbox.post(.channel(.message("next")))
        #expect(words(await inbox.take(deadline: later)) == ["next"])
    }

    @Test("before the deadline there is no silence")
    func noSilence() async {
        async let taken = inbox.take(deadline: later)
        for _ in 0..<100 {
            inbox.tick(later - .milliseconds(1))
            await Task.yield()
        }
        inbox.post(.channel(.message("a")))
        #expect(words(await taken) == ["a"])
    }

    @Test("who is cancelled gets nothing and does not wait, then or later")
    func cancelled() async {
        let inbox = inbox
        let task = Task { [later] in await inbox.take(deadline: later) }
        task.cancel()
        #expect(await task.value.isEmpty)
    }

    @Test("a reader that sleeps costs bounded memory: the oldest go, the log has them")
    func bounded() async {
        for number in 0..<5000 { inbox.post(.channel(.message("\(number)"))) }
        let taken = words(await inbox.take(deadline: later))
        #expect(taken.count <= 1024 && taken.last == "4999")
        #expect(taken == (5000 - taken.count..<5000).map(String.init))
    }

    @Test("patience begins with 0.3 s, grows to at most 10 s, and begins anew")
    func patience() {
        var patience = WatchPatience()
        #expect(patience.current == .milliseconds(300))
        for _ in 0..<20 {
            patience.grow(SystemScheduler())
            #expect(patience.current >= .milliseconds(300) && patience.current <= .seconds(10))
        }
        #expect(patience.current >= .seconds(5))
        patience.reset()
        #expect(patience.current == .milliseconds(300))
    }
}
