import GenTestSupport
import Testing

@testable import GenWorker

@Suite("Server-sent events", .timeLimit(.minutes(1)))
struct ServerSentEventParserTests {
    private func events(_ pieces: [[UInt8]], limit: Int = 1 << 20) throws -> [String] {
        var parser = ServerSentEventParser(limit: limit)
        var events: [[UInt8]] = []
        for piece in pieces { events += try parser.feed(piece) }
        if let rest = parser.finish() { events.append(rest) }
        return events.map { String(decoding: $0, as: UTF8.self) }
    }

    static let streams: [(String, [String])] = [
        ("data: a\n\n", ["a"]), ("data:a\n\n", ["a"]), ("data:  a\n\n", [" a"]), ("data: a \n\n", ["a "]),
        ("data: a\ndata: b\n\n", ["a\nb"]), ("data: a\n\ndata: b\n\n", ["a", "b"]), ("data\n\n", [""]),
        ("data:\ndata:\n\n", ["\n"]), ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", ["a", "b", "c"]),
        ("\u{FEFF}data: a\n\n", ["a"]), ("data: \u{FEFF}a\n\n", ["\u{FEFF}a"]), ("\u{FEFF}\n\ndata: a\n\n", ["a"]),
        (": comment\n\n:\n\ndata: a\n\n", ["a"]), ("event: x\nid: 1\nretry: 5\ndata: a\n\n", ["a"]),
        ("event: x\n\n", []), ("dataset: x\n\n", []), ("Data: x\n\n", []), (" data: x\n\n", []), ("\n\n\n", []),
        ("data: a", ["a"]), ("data: a\n", ["a"]), ("data: a\ndata: b", ["a\nb"]), ("", []),
        ("data: {\"a\":\"é🚋\"}\n\n", ["{\"a\":\"é🚋\"}"]), ("data: a:b\n\n", ["a:b"]),
    ]

    @Test("each stream gives its events, wherever reads end", arguments: streams)
    func everySplit(_ stream: String, _ wanted: [String]) throws {
        for pieces in Splits.all(of: Array(stream.utf8)) { #expect(try events(pieces) == wanted, "\(pieces)") }
    }

    @Test("streams at random give the same events, however they are cut", arguments: UInt64(0)..<100)
    func randomStreams(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let parts = [
            "data:", "data: ", "data", "id: 1", ":c", "a", "é", "🚋", " ", ":", "\n", "\r", "\r\n", "\n\n", "\u{FEFF}",
        ]
        let stream = (0..<40).compactMap { _ in parts.randomElement(using: &generator) }.joined()
        let whole = try events([Array(stream.utf8)])
        for _ in 0..<10 {
            #expect(try events(Splits.random(of: Array(stream.utf8), upTo: 6, using: &generator)) == whole, "\(stream)")
        }
    }

    @Test("an event of just the limit passes, one byte more does not, in one line or in many")
    func limit() throws {
        let line = "data: " + String(repeating: "x", count: 94) + "\n\n"
        #expect(try events([Array(line.utf8)], limit: 100).count == 1)
        #expect(throws: ServerSentEventParser.TooLong.self) { try events([Array("data: \(line)".utf8)], limit: 100) }
        let many = String(repeating: "data: 12345678\n", count: 20)
        #expect(throws: ServerSentEventParser.TooLong.self) { try events([Array(many.utf8)], limit: 100) }
        // The limit is for one event, not for the stream.
        let short = String(repeating: "data: 12345678\n\n", count: 200)
        #expect(try events([Array(short.utf8)], limit: 100).count == 200)
    }
}
