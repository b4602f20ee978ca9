import GenTestSupport
import Testing

@testable import GenShared

@Suite("Backoff and durations")
struct BackoffTests {
    @Test("each pause is between half and all of a doubling bound", arguments: UInt64(0)..<20)
    func bounds(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var backoff = Backoff(first: .milliseconds(100), limit: .seconds(1))
        for bound in [100, 200, 400, 800, 1000, 1000] {
            let pause = backoff.next(using: &generator)
            #expect(pause >= .milliseconds(bound) / 2 && pause <= .milliseconds(bound))
        }
        backoff.reset()
        #expect(backoff.next(using: &generator) <= .milliseconds(100))
    }

    @Test("the same numbers give the same pauses, others give others")
    func deterministic() {
        func pauses(_ seed: UInt64) -> [Duration] {
            var generator = SeededGenerator(seed: seed)
            var backoff = Backoff(first: .seconds(1), limit: .seconds(60))
            return (0..<8).map { _ in backoff.next(using: &generator) }
        }
        #expect(pauses(1) == pauses(1) && pauses(1) != pauses(2))
    }

    @Test(
        "whole milliseconds, never below 0 and never beyond 100 days",
        arguments: [
            (Duration.zero, 0), (.milliseconds(1), 1), (.microseconds(1999), 1), (.seconds(3), 3000),
            (.seconds(-3), 0), (.milliseconds(-1), 0), (.seconds(10_000_000), 8_640_000_000),
            (.milliseconds(1500), 1500),
        ])
    func milliseconds(_ duration: Duration, _ wanted: Int) { #expect(duration.milliseconds == wanted) }
}
