import GenTestSupport
import Testing

@testable import GenShared

@Suite("Timestamp", .timeLimit(.minutes(1)))
struct TimestampTests {
    @Test(
        "a moment has one form, which is read back",
        arguments: [
            (0, "1970-01-01T00:00:00.000Z"), (1, "1970-01-01T00:00:00.001Z"), (86_399_999, "1970-01-01T23:59:59.999Z"),
            (68_169_600_000, "1972-02-29T00:00:00.000Z"), (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_164_800_000, "2024-02-29T00:00:00.000Z"), (1_796_040_000_000, "2026-11-30T12:00:00.000Z"),
            (2_147_483_648_000, "2038-01-19T03:14:08.000Z"), (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (13_574_563_200_000, "2400-02-29T00:00:00.000Z"), (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
        ])
    func hasOneForm(milliseconds: Int64, text: String) {
        #expect(Timestamp(milliseconds: milliseconds).description == text)
        #expect(Timestamp(text)?.milliseconds == milliseconds)
    }

    @Test("a moment outside the years 1970 to 9999 is moved to the nearer end")
    func clamps() {
        for milliseconds in [-1, -1000, Int64.min] { #expect(Timestamp(milliseconds: milliseconds).milliseconds == 0) }
        for milliseconds in [253_402_300_800_000, Int64.max] {
            #expect(Timestamp(milliseconds: milliseconds).description == "9999-12-31T23:59:59.999Z")
        }
    }

    @Test(
        "every form of RFC 3339 is read",
        arguments: [
            ("2026-11-30T12:00:00Z", 0), ("2026-11-30t12:00:00z", 0), ("2026-11-30T12:00:00.5Z", 500),
            ("2026-11-30T12:00:00.05Z", 50), ("2026-11-30T12:00:00.123456789Z", 123),
            ("2026-11-30T12:00:00.9999Z", 999),
            ("2026-11-30T12:00:00+00:00", 0), ("2026-11-30T12:00:00-00:00", 0), ("2026-11-30T13:00:00+01:00", 0),
            ("2026-11-30T06:30:00.250-05:30", 250), ("2026-12-01T01:45:00+13:45", 0), ("2026-11-29T12:01:00-23:59", 0),
        ])
    func readsOffsets(text: String, milliseconds: Int64) {
        #expect(Timestamp(text)?.milliseconds == 1_796_040_000_000 + milliseconds)
    }

    @Test("a leap second is the second after")
    func readsLeapSeconds() {
        #expect(Timestamp("2016-12-31T23:59:60Z")?.description == "2017-01-01T00:00:00.000Z")
    }

    @Test("the offset decides whether a moment is within 1970 to 9999")
    func checksBoundsAfterOffset() {
        #expect(Timestamp("1969-12-31T23:00:00-01:00")?.milliseconds == 0)
        #expect(Timestamp("1970-01-01T00:59:59+01:00") == nil)
        #expect(Timestamp("9999-12-31T23:59:59.999-00:01") == nil)
        #expect(Timestamp("1969-12-31T23:59:59.999Z") == nil)
        #expect(Timestamp("0000-01-01T00:00:00Z") == nil)
        #expect(Timestamp("9999-12-31T23:59:60Z") == nil)
    }

    @Test(
        "a day that the calendar does not have is refused",
        arguments: [
            "2026-02-29", "2023-02-29", "2100-02-29", "2026-02-30", "2024-02-30", "2026-02-31", "2026-04-31",
            "2026-06-31",
            "2026-09-31", "2026-11-31", "2026-01-32", "2026-01-00", "2026-00-01", "2026-13-01", "2026-99-99",
        ])
    func refusesMissingDays(date: String) {
        #expect(Timestamp("\(date)T12:00:00Z") == nil)
        #expect(Timestamp("\(date)T23:30:00-01:00") == nil)
    }

    @Test(
        "every day of a year is read, and no day more",
        arguments: [1970, 1972, 1999, 2000, 2024, 2026, 2099, 2100, 2400, 9999])
    func walksTheCalendar(year: Int) throws {
        let isLeap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
        let lengths = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        func text(_ month: Int, _ day: Int) -> String {
            "\(year)-\(month < 10 ? "0" : "")\(month)-\(day < 10 ? "0" : "")\(day)T00:00:00.000Z"
        }
        var expected = try #require(Timestamp(text(1, 1))).milliseconds
        for (index, length) in lengths.enumerated() {
            for day in 1...31 {
                let timestamp = Timestamp(text(index + 1, day))
                #expect(timestamp?.milliseconds == (day <= length ? expected : nil))
                guard day <= length else { continue }
                #expect(timestamp?.description == text(index + 1, day))
                expected += 86_400_000
            }
        }
    }

    @Test(
        "garbage is refused",
        arguments: [
            "", "now", "1796040000000", "2026", "2026-11-30", "2026-11-30T12:00Z", "2026-11-30T12:00:00",
            "2026-11-30 12:00:00Z",
            "2026-11-30T24:00:00Z", "2026-11-30T12:60:00Z", "2026-11-30T12:00:61Z", "2026-11-30T12:00:00.Z",
            "2026-11-30T12:00:00,5Z",
            "2026-11-30T12:00:00ZZ", "2026-11-30T12:00:00Z ", " 2026-11-30T12:00:00Z", "2026-11-30T12:00:00+1:00",
            "2026-11-30T12:00:00+0100", "2026-11-30T12:00:00+24:00", "2026-11-30T12:00:00+01:60",
            "2026-11-30T12:00:00*01:00",
            "2026-11-30T12:00:00.5", "2026-11-30T12:00:00.+01:00", "2026-11-30T12:00:00 Europe", "+026-11-30T12:00:00Z",
            "-026-11-30T12:00:00Z", "2026/11/30T12:00:00Z", "2026-11-30T12.00.00Z", "2026-1-30T12:00:00ZZ",
            "20261130T120000ZZZZZ",
            "２０２６-11-30T12:00:00Z", "2026-11-30T12:00:00\0", "2026-11-30T12:00:00Z\0", "2026-W48-1T12:00:00Z",
            "2026-11-30T12:00:00.0000000000000000000000000000000000000Z", "22026-11-30T12:00:00Z", "😀😀😀😀😀😀😀😀",
        ])
    func refusesGarbage(text: String) {
        #expect(Timestamp(text) == nil)
    }

    @Test("any moment is read back, and the order of moments is that of their texts")
    func roundTripsAnyMoment() {
        var generator = SeededGenerator(seed: 9)
        for _ in 0..<2000 {
            let first = Timestamp(milliseconds: .random(in: 0...253_402_300_799_999, using: &generator))
            let second = Timestamp(milliseconds: .random(in: 0...253_402_300_799_999, using: &generator))
            #expect(Timestamp(first.description) == first)
            #expect((first < second) == (first.description < second.description))
        }
    }

    @Test("damage never traps, and what is still a time has a form that is read back")
    func survivesDamage() {
        var random = RandomJSON(seed: 10)
        for _ in 0..<3000 {
            let text = String(decoding: random.damaged(Array("2026-11-30T12:00:00.000+01:00".utf8)), as: UTF8.self)
            if let timestamp = Timestamp(text) { #expect(Timestamp(timestamp.description) == timestamp) }
        }
    }
}
