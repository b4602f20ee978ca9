import Synchronization

/// A llama-server by address that answers as a test says: for what no real one does on demand.
package final class FakeChatServer: Sendable {
    package typealias Answer = @Sendable (ScriptedServer.Connection, _ number: Int) -> Void

    private final class Counter: Sendable {
        let generations = Mutex(0)
    }

    private let server: ScriptedServer
    private let counter: Counter

    package var port: Int { server.port }
    /// Generations that were asked for so far.
    package var generations: Int { counter.generations.withLock { $0 } }

    /// - Parameter answer: writes the answer to the generation of that number, from 1; blocks a thread of its own.
    package init(_ answer: @escaping Answer) {
        let counter = Counter()
        self.counter = counter
        server = ScriptedServer { connection in
            guard let head = connection.readHead() else { return }
            if head.hasPrefix("GET /health") { connection.sendJSON(#"{"status":"ok"}"#) }
            if head.hasPrefix("GET /props") {
                connection.sendJSON(#"{"total_slots":8,"default_generation_settings":{"n_ctx":4096}}"#)
            }
            guard head.hasPrefix("POST") else { return }
            connection.skipBody(head)
            let number = counter.generations.withLock { count in
                count += 1
                return count
            }
            answer(connection, number)
        }
    }

    /// The inside of its entry in a worker's configuration.
    package func backend(port: Int? = nil) -> String {
        #"type: "llama-server", url: "http://127.0.0.1:\#(port ?? self.port)", parallel: 4"#
    }
}

extension ScriptedServer.Connection {
    /// The head of a stream that ends with the connection.
    package func beginStream() {
        send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n")
    }

    /// A piece of text.
    /// - Returns: false when the client has gone.
    @discardableResult
    package func sendPiece(_ text: String, lineEnd: String = "\n") -> Bool {
        send("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"\(text)\"}}]}\(lineEnd)\(lineEnd)")
    }

    /// The end as the protocol has it.
    package func endStream(lineEnd: String = "\n") {
        send(
            "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\(lineEnd)\(lineEnd)"
                + "data: [DONE]\(lineEnd)\(lineEnd)")
    }

    /// A whole answer that is no stream.
    package func sendError(_ status: String, headers: String = "", body: String = #"{"error":{"message":"no"}}"#) {
        send(
            "HTTP/1.1 \(status)\r\nContent-Type: application/json\r\n\(headers)Content-Length: \(body.utf8.count)\r\n"
                + "Connection: close\r\n\r\n\(body)")
    }

    fileprivate func sendJSON(_ body: String) { sendError("200 OK", body: body) }

    /// Ends the connection with a reset.
    package func reset() {
        FaultSocket.resetOnClose(descriptor)
    }

    fileprivate func skipBody(_ head: String) {
        let line = head.split(separator: "\r\n").first { $0.lowercased().hasPrefix("content-length:") }
        var left = line.flatMap { Int($0.split(separator: " ").last ?? "") } ?? 0
        while left > 0, let bytes = receive() { left -= bytes.count }
    }
}
