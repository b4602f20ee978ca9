/// Takes bytes of a `text/event-stream` as they come and returns the data of each whole event.
///
/// After the WHATWG's HTML standard, section 9.2: lines end with LF, CR or CRLF, also where a read splits them; data
/// lines of one event join with LF; one space after the colon goes; comments and other fields pass; a byte order mark
/// at the start is dropped. Text is decoded only when an event is whole, so that no character is cut.
struct ServerSentEventParser {
    /// An event that is longer than this is no event but a fault.
    struct TooLong: Error {}

    private let limit: Int
    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var hasData = false
    private var lastWasCarriageReturn = false
    private var isAtStart = true

    /// - Parameter limit: bytes of one event.
    init(limit: Int = 1 << 20) { self.limit = limit }

    /// The data of each event that these bytes complete.
    /// - Throws: `TooLong`.
    mutating func feed(_ bytes: [UInt8]) throws(TooLong) -> [[UInt8]] {
        var events: [[UInt8]] = []
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\n") where lastWasCarriageReturn:
                lastWasCarriageReturn = false  // The second half of CRLF.
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
                lastWasCarriageReturn = byte == UInt8(ascii: "\r")
                if let event = endLine() { events.append(event) }
            default:
                lastWasCarriageReturn = false
                line.append(byte)
                guard line.count + data.count <= limit else { throw TooLong() }
            }
        }
        return events
    }

    /// What stood after the last empty line when the stream ended.
    ///
    /// The standard drops it; a provider's last object may come this way.
    mutating func finish() -> [UInt8]? {
        if !line.isEmpty { _ = endLine() }
        return hasData ? data : nil
    }

    private mutating func endLine() -> [UInt8]? {
        defer { line.removeAll(keepingCapacity: true) }
        if isAtStart {
            isAtStart = false
            if line.starts(with: [0xEF, 0xBB, 0xBF]) { line.removeFirst(3) }
        }
        guard !line.isEmpty else {
            guard hasData else { return nil }
            defer {
                data = []
                hasData = false
            }
            return data
        }
        let name = Array("data".utf8)
        guard line.starts(with: name) else { return nil }
        var value = line.dropFirst(name.count)
        guard value.isEmpty || value.first == UInt8(ascii: ":") else { return nil }
        value = value.dropFirst()
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        if hasData { data.append(UInt8(ascii: "\n")) }
        data.append(contentsOf: value)
        hasData = true
        return nil
    }
}
