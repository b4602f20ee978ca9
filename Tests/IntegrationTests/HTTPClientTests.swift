import GenShared
import GenTestSupport
import Synchronization
import Testing

/// The HTTP adapter against a server that does what no good server does.
@Suite("HTTP client", .timeLimit(.minutes(4)))
struct HTTPClientTests {
    private let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    private let client: HTTPClient

    init() {
        ProcessSetup.run()
        client = HTTPClient()
    }

    @Test("pieces come as they are sent, and the end of a chunked body is an end")
    func pieces() async throws {
        let server = ScriptedServer { [head] connection in
            _ = connection.readHead()
            connection.send(head)
            for piece in ["one", "two", "three"] {
                connection.send("\(String(piece.utf8.count, radix: 16))\r\n\(piece)\r\n")
            }
            connection.send("0\r\n\r\n")
        }
        let exchange = client.start(HTTPRequest(.get, "http://127.0.0.1:\(server.port)/"))
        #expect(try await exchange.status() == 200)
        #expect(String(decoding: try await exchange.body(limit: 100), as: UTF8.self) == "onetwothree")
    }

    @Test("B43: a body that ends early is an error, by cut and by close")
    func truncated() async throws {
        for tail in ["5\r\nab", "3\r\nabc\r\n"] {
            let server = ScriptedServer { [head] connection in
                _ = connection.readHead()
                connection.send(head + tail)
            }
            let exchange = client.start(HTTPRequest(.get, "http://127.0.0.1:\(server.port)/"))
            await #expect(throws: HTTPError.self) { _ = try await exchange.body(limit: 100) }
        }
    }

    @Test("B44: nobody listening is unreachable, a silent server a timeout")
    func away() async throws {
        let port = try #require(FreePort.find())
        do {
            _ = try await client.fetch(HTTPRequest(.get, "http://127.0.0.1:\(port)/"))
            Issue.record("an answer came from nowhere")
        } catch let error as HTTPError { #expect(error.code == .unreachable) }
        let server = ScriptedServer { _ = $0.waitForClose(seconds: 120) }
        var request = HTTPRequest(.get, "http://127.0.0.1:\(server.port)/")
        request.totalTimeout = .milliseconds(200)
        do {
            _ = try await client.fetch(request)
            Issue.record("an answer came from a silent server")
        } catch let error as HTTPError { #expect(error.code == .timeout) }
    }

    @Test(
        "cancelling the reading task closes the connection, before the head and in mid-stream",
        arguments: [false, true])
    func cancel(_ sendsHead: Bool) async throws {
        let (closes, close) = AsyncStream.makeStream(of: Bool.self)
        let (starts, start) = AsyncStream.makeStream(of: Void.self)
        let server = ScriptedServer { [head] connection in
            _ = connection.readHead()
            if sendsHead { connection.send(head + "2\r\nab\r\n") }
            start.yield()
            close.yield(connection.waitForClose(seconds: 120))
        }
        let exchange = client.start(HTTPRequest(.get, "http://127.0.0.1:\(server.port)/"))
        let reader = Task {
            _ = try await exchange.status()
            while try await exchange.next() != nil {}
        }
        for await _ in starts { break }
        reader.cancel()
        await #expect(throws: CancellationError.self) { try await reader.value }
        for await closed in closes {
            // The server would have waited 120 s: only the cancel can have closed it. How soon is not judged here, where
            // a thousand tasks of other tests share the pool; the tests of cancelled jobs measure it.
            #expect(closed)
            break
        }
    }

    @Test("an exchange that nobody holds any more closes its connection")
    func dropped() async throws {
        let (closes, close) = AsyncStream.makeStream(of: Bool.self)
        let (starts, start) = AsyncStream.makeStream(of: Void.self)
        let server = ScriptedServer { connection in
            _ = connection.readHead()
            start.yield()
            close.yield(connection.waitForClose(seconds: 120))
        }
        var exchange: HTTPExchange? = client.start(HTTPRequest(.get, "http://127.0.0.1:\(server.port)/"))
        for await _ in starts { break }
        #expect(exchange != nil)
        exchange = nil
        for await closed in closes {
            #expect(closed)
            break
        }
    }

    @Test("a reader that does not read stops the sender, and loses nothing")
    func backpressure() async throws {
        let sent = Atomic(0)
        let total = 64 << 20
        let (fulls, full) = AsyncStream.makeStream(of: Int.self)
        let server = ScriptedServer { connection in
            _ = connection.readHead()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: \(total)\r\n\r\n")
            let piece = [UInt8](repeating: 0x61, count: 65_536)
            var count = 0
            var idle = 0
            // Until the window has stayed full for a while.
            while count < total, idle < 50 {
                let taken = connection.sendSome(Array(piece.prefix(total - count)))
                count += taken
                idle = taken == 0 ? idle + 1 : 0
                if taken == 0 { pause() }
            }
            full.yield(count)
            while count < total {
                guard connection.send(Array(piece.prefix(total - count))) else { break }
                count += min(piece.count, total - count)
            }
            sent.store(count, ordering: .relaxed)
        }
        let exchange = client.start(HTTPRequest(.get, "http://127.0.0.1:\(server.port)/"))
        #expect(try await exchange.status() == 200)
        for await count in fulls {
            #expect(count < total / 2, "the whole body was taken although nobody reads: \(count)")
            break
        }
        var received = 0
        while let piece = try await exchange.next() { received += piece.count }
        #expect(received == total)
    }

    @Test("B47: a header with a line break is refused before anything is sent")
    func headerInjection() async throws {
        var request = HTTPRequest(.get, "http://127.0.0.1:1/")
        request.headers.append((name: "X-Key", value: "a\r\nX-Other: b"))
        do {
            _ = try await client.fetch(request)
            Issue.record("the header was sent")
        } catch let error as HTTPError { #expect(error.code == .invalid) }
    }

    @Test("a closed client answers what is under way and what comes after with an error")
    func closed() async throws {
        let server = ScriptedServer { _ = $0.waitForClose(seconds: 120) }
        let own = HTTPClient()
        let exchange = own.start(HTTPRequest(.get, "http://127.0.0.1:\(server.port)/"))
        await own.close()
        await #expect(throws: HTTPError.self) { _ = try await exchange.status() }
        await #expect(throws: HTTPError.self) { _ = try await own.fetch(HTTPRequest(.get, "http://127.0.0.1:1/")) }
    }
}
