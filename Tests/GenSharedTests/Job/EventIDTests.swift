import Testing

@testable import GenShared

@Suite("Event id", .timeLimit(.minutes(1)))
struct EventIDTests {
    @Test(
        "two numbers are an id",
        arguments: [(0, 0), (0, 1), (1, 5), (10, 9), (9_223_372_036_854_775_806, 0), (1, 9_223_372_036_854_775_806)]
            as [(UInt64, UInt64)])
    func roundTrips(attempt: UInt64, sequence: UInt64) throws {
        let id = EventID(attempt: attempt, sequence: sequence)
        #expect(id.description == "\(attempt)-\(sequence)")
        #expect(EventID(id.description) == id)
    }

    @Test(
        "anything else is none",
        arguments: [
            "", "-", "1", "1-", "-1", "1--1", "--1", "-1-1", "1-1-", "-1-1-", "1-2-3", "+1-1", "1-+1", "1--2", " 1-1",
            "1-1 ",
            "1 - 1", "1-1\n", "1-1\0", "1_1", "1–1", "a-1", "1-a", "0x1-1", "1-1e3", "1.0-1", "1-*", "*", "١-١", "１-１",
            "1-\u{301}1",
            "$", "+", "(1-1",
        ])
    func refusesOther(text: String) {
        #expect(EventID(text) == nil)
    }

    @Test(
        "a number of 2⁶³-1 or more is none",
        arguments: [
            "9223372036854775807", "9223372036854775808", "18446744073709551615", "18446744073709551616",
            "99999999999999999999", String(repeating: "9", count: 10_000), String(repeating: "0", count: 20),
        ])
    func refusesOverflow(number: String) {
        #expect(EventID("\(number)-1") == nil)
        #expect(EventID("1-\(number)") == nil)
    }

    @Test("ids compare as two integers, not as text")
    func compares() {
        let ascending = [
            EventID.origin, .queued, EventID(attempt: 0, sequence: 2), EventID(attempt: 1, sequence: 0),
            EventID(attempt: 1, sequence: 9), EventID(attempt: 1, sequence: 10), EventID(attempt: 2, sequence: 1),
            EventID(attempt: 10, sequence: 0), EventID(attempt: 10, sequence: .max),
        ]
        #expect(Array(ascending.reversed()).sorted() == ascending)
        for (index, id) in ascending.enumerated() {
            for (other, second) in ascending.enumerated() {
                #expect((id < second) == (index < other))
                #expect((id == second) == (index == other))
            }
        }
    }

    @Test("the next id is the least one that is greater, of the same attempt")
    func followsItself() {
        let id = EventID(attempt: 3, sequence: 9)
        #expect(id.next == EventID(attempt: 3, sequence: 10))
        #expect(id < id.next)
        #expect(EventID.origin.next == .queued)
    }

    @Test("the greatest id that can be read has a next one")
    func neverOverflows() throws {
        let greatest = try #require(EventID("9223372036854775806-9223372036854775806"))
        #expect(greatest.next.description == "9223372036854775806-9223372036854775807")
    }
}
