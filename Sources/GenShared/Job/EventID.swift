/// The place of an event in its job's log: `<attempt>-<seq>`, compared as two integers.
///
/// It is the id of the entry in the Redis stream, too, where a stale writer's lower ids are refused by Redis itself.
public struct EventID: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The attempt that wrote it; 0 before the first.
    public let attempt: UInt64
    /// Its number within the attempt, from 1.
    public let sequence: UInt64

    /// Before everything.
    public static let origin = EventID(attempt: 0, sequence: 0)
    /// The `queued` event, which is published but never in the log.
    public static let queued = EventID(attempt: 0, sequence: 1)

    /// An id.
    public init(attempt: UInt64, sequence: UInt64) {
        self.attempt = attempt
        self.sequence = sequence
    }

    /// Reads `<attempt>-<seq>`; `nil` for anything else, also for numbers of 2⁶³-1 and more.
    public init?(_ text: String) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let attempt = Self.number(parts[0]), let sequence = Self.number(parts[1]) else {
            return nil
        }
        self.init(attempt: attempt, sequence: sequence)
    }

    /// The next id of the same attempt.
    public var next: EventID { EventID(attempt: attempt, sequence: sequence + 1) }

    /// `<attempt>-<seq>`.
    public var description: String { "\(attempt)-\(sequence)" }

    /// By attempt, then by number.
    public static func < (left: EventID, right: EventID) -> Bool {
        (left.attempt, left.sequence) < (right.attempt, right.sequence)
    }

    private static func number(_ text: Substring) -> UInt64? {
        guard (1...19).contains(text.utf8.count), text.utf8.allSatisfy({ $0 &- UInt8(ascii: "0") < 10 }),
            let value = UInt64(text), value <= UInt64(Int64.max) - 1
        else { return nil }
        return value
    }
}
