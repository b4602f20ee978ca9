import GenTestSupport
import Testing

@testable import GenWorker

@Suite("Server-sent events", .timeLimit(.minutes(1)))
struct ServerSentEventParserTests {
    private func events(_ pieces: [[UInt8]], limit: Int = 1 << 20) throws -> [String] {
        let (events, fault) = parse(pieces, limit: limit)
        if let fault { throw fault }
        return events
    }

    /// The events up to the fault, if there is one.
    private func parse(
        _ pieces: [[UInt8]], limit: Int = 1 << 20
    ) -> (events: [String], fault: ServerSentEventParser.Fault?) {
        var parser = ServerSentEventParser(limit: limit)
        var events: [[UInt8]] = []
        var fault: ServerSentEventParser.Fault?
        do throws(ServerSentEventParser.Fault) {
            for piece in pieces { try parser.feed(piece, into: &events) }
            try parser.finish(into: &events)
        } catch { fault = error }
        return (events.map { String(decoding: $0, as: UTF8.self) }, fault)
    }

    static let streams: [(String, [String])] = [
        ("data: a\n\n", ["a"]), ("data:a\n\n", ["a"]), ("data:  a\n\n", [" a"]), ("data: a \n\n", ["a "]),
        ("data: a\ndata: b\n\n", ["a\nb"]), ("data: a\n\ndata: b\n\n", ["a", "b"]), ("data\n\n", [""]),
        ("data:\ndata:\n\n", ["\n"]), ("data: a\r\n\r\ndata: b\r\rdata: c\n\n", ["a", "b", "c"]),
        ("\u{FEFF}data: a\n\n", ["a"]), ("data: \u{FEFF}a\n\n", ["\u{FEFF}a"]), ("\u{FEFF}\n\ndata: a\n\n", ["a"]),
        (": comment\n\n:\n\ndata: a\n\n", ["a"]), ("event: x\nid: 1\nretry: 5\ndata: a\n\n", ["a"]),
        ("event: x\n\n", []), ("dataset: x\n\n", []), ("Data: x\n\n", []), ("\n\n\n", []), ("event\nid\nretry\n\n", []),
        ("data: a", ["a"]), ("data: a\n", ["a"]), ("data: a\ndata: b", ["a\nb"]), ("", []),
        ("data: {\"a\":\"é🚋\"}\n\n", ["{\"a\":\"é🚋\"}"]), ("data: a:b\n\n", ["a:b"]),
    ]

    @Test("B34: each stream gives its events by the standard, wherever reads end", arguments: streams)
    func everySplit(_ stream: String, _ wanted: [String]) throws {
        for pieces in Splits.all(of: Array(stream.utf8)) { #expect(try events(pieces) == wanted, "\(pieces)") }
    }

    @Test(
        "B35: a line that has not the form of a field is a fault, after the events before it, wherever reads end",
        arguments: [
            "garbage", " data: x", "<html>", "<!DOCTYPE html>", "{\"error\":{\"message\":\"x\"}}",
            "Internal Server Error",
            "oices\":[{\"delta\":{}}]}", "upstream connect error: reset", "\u{1F}\u{8B}\u{8}", "dät: x",
            "\u{FEFF}data: b",
        ])
    func foreignLines(_ line: String) {
        for pieces in Splits.all(of: Array("data: a\n\n\(line)\n\ndata: b\n\n".utf8)) {
            let (events, fault) = parse(pieces)
            #expect(events == ["a"] && fault == .foreignLine(Array(line.utf8)), "\(pieces)")
        }
        #expect(parse([Array("data: a\n\n\(line)".utf8)]).fault != nil)
    }

    @Test("B42: a hundred thousand events of one byte leave nothing behind, wherever they are cut")
    func manyEvents() throws {
        var parser = ServerSentEventParser()
        let thousand = Array(String(repeating: "data:x\n\n", count: 1000).utf8)
        var count = 0
        for _ in 0..<100 {
            var events: [[UInt8]] = []
            try parser.feed(thousand, into: &events)
            count += events.count
        }
        var rest: [[UInt8]] = []
        try parser.finish(into: &rest)
        #expect(count == 100_000 && rest.isEmpty)
    }

    @Test("streams at random give the same events, however they are cut", arguments: UInt64(0)..<100)
    func randomStreams(_ seed: UInt64) throws {
        var generator = SeededGenerator(seed: seed)
        let parts = [
            "data:", "data: ", "data", "id: 1", ":c", "a", "é", "🚋", " ", ":", "\n", "\r", "\r\n", "\n\n", "\u{FEFF}",
        ]
        let stream = (0..<40).compactMap { _ in parts.randomElement(using: &generator) }.joined()
        let whole = parse([Array(stream.utf8)])
        for _ in 0..<10 {
            let cut = parse(Splits.random(of: Array(stream.utf8), upTo: 6, using: &generator))
            #expect(cut.events == whole.events && cut.fault == whole.fault, "\(stream)")
        }
    }

    @Test("B42: an event of just the limit passes, one byte more does not, in one line or in many")
    func limit() throws {
        let line = "data: " + String(repeating: "x", count: 94) + "\n\n"
        #expect(try events([Array(line.utf8)], limit: 100).count == 1)
        #expect(throws: ServerSentEventParser.Fault.tooLong) { try events([Array("data: \(line)".utf8)], limit: 100) }
        let many = String(repeating: "data: 12345678\n", count: 20)
        #expect(throws: ServerSentEventParser.Fault.tooLong) { try events([Array(many.utf8)], limit: 100) }
        // The limit is for one event, not for the stream.
        let short = String(repeating: "data: 12345678\n\n", count: 200)
        #expect(try events([Array(short.utf8)], limit: 100).count == 200)
    }
}
