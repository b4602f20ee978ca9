import Synchronization
import Testing

@testable import GenShared

@Suite("Runtime", .timeLimit(.minutes(1)))
struct RuntimeTests {
    /// An actor on a thread of its own that can be asked on which one it runs.
    private actor Pinned {
        nonisolated let executor = PinnedExecutor(name: "test")
        nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }
        private var count = 0
        private let onEnd: @Sendable () -> Void

        init(onEnd: @escaping @Sendable () -> Void = {}) { self.onEnd = onEnd }
        isolated deinit { onEnd() }

        func add() -> Int {
            preconditionIsolated()
            assertIsolated()
            count += 1
            return count
        }
    }

    @Test("10,000 calls of many tasks all run, one at a time")
    func calls() async {
        let pinned = Pinned()
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<100 {
                group.addTask { for _ in 0..<100 { _ = await pinned.add() } }
            }
        }
        #expect(await pinned.add() == 10_001)
    }

    @Test("an actor that nobody holds ends on its own thread, also when it was never called")
    func end() async {
        let (ends, end) = AsyncStream.makeStream(of: Void.self)
        for called in [true, false] {
            do {
                let pinned = Pinned { end.yield() }
                if called { _ = await pinned.add() }
            }
            for await _ in ends { break }
        }
    }

    @Test("a mailbox keeps order, and refuses once it is closed")
    func mailbox() {
        let mailbox = Mailbox<Int>()
        for number in 0..<5 { #expect(mailbox.post(number)) }
        #expect(mailbox.takeAll() == [0, 1, 2, 3, 4] && mailbox.isEmpty)
        #expect(mailbox.post(5))
        #expect(mailbox.close() == [5])
        #expect(!mailbox.post(6))
    }

    @Test("a queue is first in, first out, over its growth and its clean-ups")
    func queue() {
        var queue = Queue<Int>()
        var next = 0
        var expected = 0
        for round in 0..<5000 {
            for _ in 0..<(round % 3 + 1) {
                queue.append(next)
                next += 1
            }
            #expect(queue.first == expected && queue.popFirst() == expected)
            expected += 1
            #expect(queue.count == next - expected)
        }
        #expect(queue.removeAll() == Array(expected..<next) && queue.isEmpty && queue.popFirst() == nil)
    }

    @Test("pauses double up to their limit, with at most half taken off")
    func backoff() {
        var backoff = Backoff(first: .seconds(1), limit: .seconds(8))
        for seconds in [1, 2, 4, 8, 8, 8] {
            let pause = backoff.next()
            #expect(pause <= .seconds(seconds) && pause >= .milliseconds(seconds * 500))
        }
        backoff.reset()
        #expect(backoff.next() <= .seconds(1))
    }

    @Test("a child's last lines and its status are known, a missing program is an ending, too")
    func child() async throws {
        let child = ChildProcess(name: "child")
        try await child.start(
            ["sh", "-c", "echo out; echo err >&2; echo \"$WORD\"; exit 3"], environment: ["WORD": "w"])
        #expect(await child.end() == .exited(3))
        #expect(await child.lastLines == ["out", "err", "w"])
        let missing = ChildProcess(name: "child")
        try await missing.start(["/nonexistent-program"])
        #expect(await missing.end() != .exited(0))
        let many = ChildProcess(name: "child")
        try await many.start(["sh", "-c", "seq 1 500"])
        #expect(await many.end() == .exited(0))
        #expect(await many.lastLines == (451...500).map(String.init))
    }

    @Test("a child hears SIGTERM, whatever its parent has blocked, and is gone when its owner is")
    func childSignals() async throws {
        let child = ChildProcess(name: "child")
        try await child.start(["sleep", "1000"])
        await child.signal(15)
        #expect(await child.end() == .signalled(15))
    }

    @Test("the topology has the names and arguments of the contract")
    func topology() throws {
        let topology = Topology(pools: ["text"])
        #expect(
            topology.queues.map(\.name).sorted() == [
                "gen.dead.v1", "gen.dropped.v1", "gen.jobs.v1.text.batch", "gen.jobs.v1.text.interactive",
                "gen.retry.v1.10m", "gen.retry.v1.10s", "gen.retry.v1.1m", "gen.retry.v1.2s",
            ])
        #expect(topology.queues.allSatisfy { $0.arguments["x-queue-type"] == .text("quorum") })
        let lane = try #require(topology.queues.first { $0.name == "gen.jobs.v1.text.batch" })
        #expect(lane.arguments["x-dead-letter-exchange"] == .text("gen.dropped.v1"))
        #expect(lane.arguments["x-consumer-timeout"] == .integer(7_200_000))
        let tier = try #require(topology.queues.first { $0.name == "gen.retry.v1.10s" })
        #expect(tier.arguments["x-message-ttl"] == .integer(10_000))
        #expect(tier.arguments["x-dead-letter-exchange"] == .text("gen.jobs.v1"))
        #expect(Topology.tier(for: .seconds(3)) == "gen.retry.v1.10s")
        #expect(Topology.tier(for: .seconds(9999)) == "gen.retry.v1.10m")
    }
}
