/// Takes bytes of a `text/event-stream` as they come and returns the data of each whole event.
///
/// After the WHATWG's HTML standard, section 9.2: lines end with LF, CR or CRLF, also where a read splits them; data
/// lines of one event join with LF; one space after the colon goes; comments and other fields pass; a byte order mark
/// at the start is dropped. Text is decoded only when an event is whole, so that no character is cut.
///
/// Stricter than the standard in one thing: a line that has not even the form of a field, such as a proxy's page or the
/// rest of a line whose begin was lost, is a fault. The standard skips it, and with it a piece of the answer.
struct ServerSentEventParser {
    /// Why the stream is none that can be trusted.
    enum Fault: Error, Equatable {
        /// An event that is longer than the limit.
        case tooLong
        /// A line that is no field; its first bytes.
        case foreignLine([UInt8])
    }

    private static let dataField = Array("data".utf8)
    private static let otherFields = ["event", "id", "retry"].map { Array($0.utf8) }

    private let limit: Int
    private var line: [UInt8] = []
    private var data: [UInt8] = []
    private var hasData = false
    private var lastWasCarriageReturn = false
    private var isAtStart = true

    /// - Parameter limit: bytes of one event.
    init(limit: Int = 1 << 20) { self.limit = limit }

    /// Adds the data of each event that these bytes complete; those before a fault, too.
    /// - Throws: `Fault`.
    mutating func feed(_ bytes: [UInt8], into events: inout [[UInt8]]) throws(Fault) {
        for byte in bytes {
            switch byte {
            case UInt8(ascii: "\n") where lastWasCarriageReturn:
                lastWasCarriageReturn = false  // The second half of CRLF.
            case UInt8(ascii: "\n"), UInt8(ascii: "\r"):
                lastWasCarriageReturn = byte == UInt8(ascii: "\r")
                if let event = try endLine() { events.append(event) }
            default:
                lastWasCarriageReturn = false
                line.append(byte)
                guard line.count + data.count <= limit else { throw .tooLong }
            }
        }
    }

    /// Adds what stood after the last empty line when the stream ended.
    ///
    /// The standard drops it; a provider's last object may come this way.
    /// - Throws: `Fault`.
    mutating func finish(into events: inout [[UInt8]]) throws(Fault) {
        if !line.isEmpty { _ = try endLine() }
        if hasData { events.append(data) }
    }

    private mutating func endLine() throws(Fault) -> [UInt8]? {
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
        let name = line.prefix { $0 != UInt8(ascii: ":") }
        guard name.elementsEqual(Self.dataField) else {
            guard isField(name) else { throw .foreignLine(Array(line.prefix(80))) }
            return nil
        }
        var value = line.dropFirst(name.count + 1)
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        if hasData { data.append(UInt8(ascii: "\n")) }
        data.append(contentsOf: value)
        hasData = true
        return nil
    }

    /// Whether the line is a comment, a field of the standard, or a name of ASCII letters with a colon: a field that we
    /// do not know.
    private func isField(_ name: ArraySlice<UInt8>) -> Bool {
        guard name.count < line.count else { return Self.otherFields.contains { name.elementsEqual($0) } }
        return name.allSatisfy { byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                true
            default: false
            }
        }
    }
}
