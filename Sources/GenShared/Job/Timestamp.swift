/// A moment, in milliseconds of Unix time, between the years 1970 and 9999.
public struct Timestamp: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// Milliseconds since the start of 1970, UTC.
    public let milliseconds: Int64

    private static let range: ClosedRange<Int64> = 0...253_402_300_799_999

    /// A moment; one outside the range is moved to its nearer end.
    public init(milliseconds: Int64) {
        self.milliseconds = min(max(milliseconds, Self.range.lowerBound), Self.range.upperBound)
    }

    /// Reads the form of RFC 3339, such as `2026-11-30T12:00:00.000Z` or with an offset `+01:00`.
    public init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count >= 20, bytes.count <= 40, bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"),
            bytes[10] == UInt8(ascii: "T") || bytes[10] == UInt8(ascii: "t"), bytes[13] == UInt8(ascii: ":"),
            bytes[16] == UInt8(ascii: ":"),
            let year = Self.number(bytes[0..<4]), let month = Self.number(bytes[5..<7], in: 1...12),
            let day = Self.number(bytes[8..<10], in: 1...31), let hour = Self.number(bytes[11..<13], in: 0...23),
            let minute = Self.number(bytes[14..<16], in: 0...59), let second = Self.number(bytes[17..<19], in: 0...60)
        else { return nil }
        var rest = bytes[19...]
        var fraction: Int64 = 0
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix { $0 &- UInt8(ascii: "0") < 10 }
            guard !digits.isEmpty else { return nil }
            let three = (Array(digits) + [0x30, 0x30]).prefix(3)
            fraction = Self.number(three) ?? 0
            rest = rest.dropFirst(digits.count + 1)
        }
        guard let offsetMinutes = Self.offset(rest) else { return nil }
        let days = Self.days(year: year, month: month, day: day)
        // A day that its month does not have, such as 30 February, would come back as one of the next month.
        guard Self.date(days: days) == (year, month, day) else { return nil }
        let seconds = ((days * 24 + hour) * 60 + minute - offsetMinutes) * 60 + second
        let total = seconds * 1000 + fraction
        guard Self.range.contains(total) else { return nil }
        milliseconds = total
    }

    /// The form of RFC 3339, in UTC with milliseconds.
    public var description: String {
        let days = milliseconds / 86_400_000
        let rest = milliseconds % 86_400_000
        let (year, month, day) = Self.date(days: days)
        func padded(_ value: Int64, _ width: Int) -> String {
            let digits = String(value)
            return String(repeating: "0", count: max(0, width - digits.count)) + digits
        }
        return "\(padded(year, 4))-\(padded(month, 2))-\(padded(day, 2))T\(padded(rest / 3_600_000, 2)):"
            + "\(padded(rest / 60_000 % 60, 2)):\(padded(rest / 1000 % 60, 2)).\(padded(rest % 1000, 3))Z"
    }

    /// Earlier comes first.
    public static func < (left: Timestamp, right: Timestamp) -> Bool { left.milliseconds < right.milliseconds }

    private static func number(_ digits: some Collection<UInt8>, in range: ClosedRange<Int64> = 0...9999) -> Int64? {
        guard digits.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }) else { return nil }
        let value = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
        return range.contains(value) ? value : nil
    }

    private static func offset(_ text: ArraySlice<UInt8>) -> Int64? {
        let bytes = Array(text)
        if bytes == [UInt8(ascii: "Z")] || bytes == [UInt8(ascii: "z")] { return 0 }
        guard bytes.count == 6, bytes[3] == UInt8(ascii: ":"), let hour = number(bytes[1..<3], in: 0...23),
            let minute = number(bytes[4..<6], in: 0...59)
        else { return nil }
        switch bytes[0] {
        case UInt8(ascii: "+"): return hour * 60 + minute
        case UInt8(ascii: "-"): return -(hour * 60 + minute)
        default: return nil
        }
    }

    // The civil calendar as counted in days of 400-year eras that begin in March, so that the leap day comes last.

    private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let era = (shifted >= 0 ? shifted : shifted - 399) / 400
        let yearOfEra = shifted - era * 400
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func date(days: Int64) -> (Int64, Int64, Int64) {
        let shifted = days + 719_468
        let era = shifted / 146_097
        let dayOfEra = shifted % 146_097
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let part = (5 * dayOfYear + 2) / 153
        let month = part < 10 ? part + 3 : part - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * part + 2) / 5 + 1)
    }
}
