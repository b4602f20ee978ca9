import GenShared
import GenTestSupport
import Synchronization
import Testing

@testable import GenWorker

/// The whole way from the socket to the events, against servers that answer what no good one does.
@Suite("llama-server: bad replies", .timeLimit(.minutes(1)))
struct LlamaServerRepliesTests {
    private static let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    private static let hello = "data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"hello\"}}]}\n\n"
    private static let stop = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"
    private static let done = "data: [DONE]\n\n"

    private let http: HTTPClient

    init() {
        ProcessSetup.run()
        http = HTTPClient()
    }

    private struct Outcome {
        var text = ""
        var finish: FinishReason?
        var failure: JobFailure?
        /// The heads of the requests that the server got.
        var requests: [String] = []
    }

    /// One generation against a server that answers each connection with these bytes and closes it.
    private func generate(_ answer: [UInt8], key: String? = nil) async throws -> Outcome {
        let log = RequestLog()
        let server = ScriptedServer { connection in
            guard let head = connection.readRequest() else { return }
            log.heads.withLock { $0.append(head) }
            connection.send(answer)
        }
        let backend = try LlamaServerBackend(
            name: "b",
            place: .address(
                url: "http://127.0.0.1:\(server.port)", key: key.map(Secret.init), slots: 1, startTimeout: .seconds(1)),
            http: http)
        let stream = backend.generate(
            GenerationRequest(
                kind: .reply, messages: [ConversationMessage(role: .user, content: "hi")], options: GenerationOptions())
        )
        var outcome = Outcome()
        do {
            while let event = try await stream.next() {
                switch event {
                case .text(let text): outcome.text += text
                case .finished(let reason, _, _): outcome.finish = reason
                default: break
                }
            }
        } catch let error as JobFailure { outcome.failure = error }
        await stream.settle()
        outcome.requests = log.heads.withLock { $0 }
        return outcome
    }

    private final class RequestLog: Sendable {
        let heads = Mutex<[String]>([])
    }

    private func generate(_ answer: String, key: String? = nil) async throws -> Outcome {
        try await generate(Array(answer.utf8), key: key)
    }

    @Test(
        "B32: a page, an empty body and 204 are a bad reply that may be tried again",
        arguments: [
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<!DOCTYPE html>\n<html><body>Welcome</body></html>",
            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n", head, "\(head)\n\n\n",
            "HTTP/1.1 200 OK\r\n\r\n{\"choices\":[{\"message\":{\"content\":\"whole\"}}]}",
        ])
    func noStream(_ answer: String) async throws {
        let outcome = try await generate(answer)
        #expect(outcome.failure?.code == .badReply && outcome.failure?.isRetryable == true)
        #expect(outcome.finish == nil && outcome.requests.count == 1)
    }

    @Test("B32: a proxy's 503 is a failure that may be tried again, not a model that loads")
    func proxyIsAway() async throws {
        let page = "<html>Service Unavailable</html>"
        let outcome = try await generate(
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: \(page.utf8.count)\r\n\r\n\(page)")
        #expect(outcome.failure?.code == .unavailable && outcome.failure?.isRetryable == true)
        #expect(outcome.requests.count == 1)
        #expect(ChatError.isLoading(Array(#"{"error":{"message":"Loading model","code":503}}"#.utf8)))
        #expect(!ChatError.isLoading([]) && !ChatError.isLoading(Array("{}".utf8)))
    }

    @Test("B33: an error in the middle of a stream is the attempt's failure, with its class")
    func errorInStream() async throws {
        let error = #"data: {"error":{"code":429,"message":"slow down","type":"rate_limit"}}"#
        let outcome = try await generate("\(Self.head)\(Self.hello)\(error)\n\n\(Self.done)")
        #expect(outcome.failure?.code == .rateLimited && outcome.finish == nil)
    }

    @Test(
        "B35: a cut object, two in one event and a garbage line fail the attempt, also beside a good end",
        arguments: [
            "data: {\"choices\":[{\"del\n\n", "data: {}{}\n\n", "garbage\n\n", "ta: {\"choices\":[]}}]}\n\n\u{0}\n\n",
            "data: 7\n\n",
        ])
    func garbage(_ line: String) async throws {
        let outcome = try await generate("\(Self.head)\(Self.hello)\(line)\(Self.hello)\(Self.stop)\(Self.done)")
        #expect(outcome.failure?.code == .badReply && outcome.failure?.isRetryable == true && outcome.finish == nil)
    }

    @Test(
        "B39: a finish reason before the close is success without [DONE], too; neither is a failure",
        arguments: [(stop, FinishReason?.some(.stop)), (stop + done, .stop), (done, .stop), ("", nil)])
    func ends(_ end: String, _ finish: FinishReason?) async throws {
        let outcome = try await generate(Self.head + Self.hello + end)
        #expect(outcome.finish == finish && outcome.text == "hello")
        #expect(outcome.failure?.code == (finish == nil ? .badReply : nil))
    }

    @Test("B39: a last object without an empty line counts if it is whole, and not if it is cut")
    func lastObject() async throws {
        #expect(try await generate(Self.head + Self.hello + Self.stop.dropLast(2)).finish == .stop)
        #expect(try await generate(Self.head + Self.hello + Self.stop.dropLast(8)).failure?.code == .badReply)
        #expect(try await generate(Self.head + Self.hello + Self.hello.dropLast(2)).failure?.code == .badReply)
    }

    @Test("B40: what follows [DONE] does not count")
    func afterEnd() async throws {
        let outcome = try await generate(Self.head + Self.hello + Self.stop + Self.done + Self.hello + "garbage\n\n")
        #expect(outcome.finish == .stop && outcome.text == "hello" && outcome.failure == nil)
    }

    @Test("B38: a reason that we do not know is told as it is")
    func unknownReason() async throws {
        let outcome = try await generate(
            Self.head + Self.hello + Self.stop.replacing("stop", with: "eos_token") + Self.done)
        #expect(outcome.finish == .other("eos_token"))
    }

    @Test("B36: half of a character at the end is one U+FFFD")
    func brokenEnd() async throws {
        let half = Self.hello.replacing("hello", with: "a\\ud83d")
        #expect(try await generate(Self.head + half + Self.stop + Self.done).text == "a\u{FFFD}")
        #expect(try await generate(Self.head + half + Self.stop).text == "a\u{FFFD}")
    }

    @Test("B42: an event of 50 MB is a fault after 1 MiB")
    func hugeEvent() async throws {
        let outcome = try await generate(
            Array(Self.head.utf8) + Array("data: ".utf8) + [UInt8](repeating: 0x61, count: 50 << 20))
        #expect(outcome.failure?.code == .badReply && outcome.failure?.message.contains("1 MiB") == true)
    }

    @Test("B43: nothing is unpacked: a packed body is a fault")
    func packed() async throws {
        let gzip: [UInt8] = [
            0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 0x4B, 0x49, 0x2C, 0x49, 0xB4, 0x0A, 0, 0x85, 0x11, 0x4A, 0x0D,
        ]
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Encoding: gzip\r\n\r\n"
        let outcome = try await generate(Array(head.utf8) + gzip)
        #expect(outcome.failure?.code == .badReply)
        #expect(outcome.requests.allSatisfy { !$0.lowercased().contains("accept-encoding") })
    }

    @Test("B43: another content type does not matter if the stream is one; trailers pass")
    func otherHeads() async throws {
        let body = Self.hello + Self.stop + Self.done
        #expect(try await generate("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n\(body)").finish == .stop)
        let chunks = "\(String(body.utf8.count, radix: 16))\r\n\(body)\r\n0\r\nX-Checksum: 7\r\n\r\n"
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Checksum\r\n\r\n"
        #expect(try await generate(head + chunks).finish == .stop)
    }

    @Test("B43: a length that lies is a failure unless the end mark was there")
    func lyingLength() async throws {
        let body = Self.hello + Self.stop
        for length in [body.utf8.count + 10, Self.hello.utf8.count - 5] {
            let outcome = try await generate("HTTP/1.1 200 OK\r\nContent-Length: \(length)\r\n\r\n\(body)")
            #expect(outcome.finish == nil && outcome.failure?.isRetryable == true)
        }
        let whole = "HTTP/1.1 200 OK\r\nContent-Length: 999999\r\n\r\n\(body)\(Self.done)"
        #expect(try await generate(whole).finish == .stop)
    }

    @Test("B44: a redirect is not followed, and is told with the way out", arguments: [301, 302, 303, 307, 308])
    func redirect(_ status: Int) async throws {
        let log = RequestLog()
        let other = ScriptedServer { connection in
            if let head = connection.readHead() { log.heads.withLock { $0.append(head) } }
        }
        let outcome = try await generate(
            "HTTP/1.1 \(status) Moved\r\nLocation: http://127.0.0.1:\(other.port)/\r\nContent-Length: 0\r\n\r\n",
            key: "k")
        #expect(outcome.failure?.code == .badReply && outcome.failure?.isRetryable == false)
        #expect(outcome.failure?.message.contains("`url`") == true)
        #expect(log.heads.withLock { $0.isEmpty } && outcome.requests.count == 1)
    }

    @Test("B44: 401 and 407 are permanent, asked once, and the key is not told although the server repeats it")
    func refused() async throws {
        for (status, header) in [
            (401, "WWW-Authenticate: Basic realm=x"), (403, "X: y"), (407, "Proxy-Authenticate: NTLM"),
        ] {
            let body = #"{"error":{"message":"no such key: hunter2"}}"#
            let outcome = try await generate(
                "HTTP/1.1 \(status) No\r\n\(header)\r\nContent-Length: \(body.utf8.count)\r\n\r\n\(body)",
                key: "hunter2")
            #expect(outcome.failure?.code == .unauthorized && outcome.failure?.isRetryable == false)
            #expect(
                outcome.failure?.message.contains("no such key: ***") == true, "\(String(describing: outcome.failure))")
            #expect(outcome.requests.count == 1)
        }
    }

    @Test("B44: 100-continue is not asked for, and passes")
    func interim() async throws {
        let answer =
            "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n\(Self.head)\(Self.hello)\(Self.stop)"
        let outcome = try await generate(answer)
        #expect(outcome.finish == .stop && outcome.requests.allSatisfy { !$0.lowercased().contains("expect:") })
        // Nothing but interim answers is no answer.
        let none = try await generate("HTTP/1.1 100 Continue\r\n\r\n")
        #expect(none.failure?.isRetryable == true && none.finish == nil)
    }

    @Test(
        "B45: a Retry-After is obeyed within 10 minutes; one that makes no sense does no harm",
        arguments: [
            ("7", 7), ("1000000000", 600), ("Wed, 21 Oct 2099 07:28:00 GMT", 600), ("-1", nil),
            ("Wed, 21 Oct 2026 07:28:00 GMT", nil), ("soon", nil), ("", nil), ("\u{1B}[2J", nil),
        ] as [(String, Int?)])
    func retryAfter(_ value: String, _ seconds: Int?) async throws {
        let outcome = try await generate("HTTP/1.1 429 Slow\r\nRetry-After: \(value)\r\nContent-Length: 0\r\n\r\n")
        #expect(outcome.failure?.code == .rateLimited && outcome.failure?.isRetryable == true)
        #expect(outcome.failure?.retryAfterSeconds == seconds)
    }

    @Test("B45: numbers beyond all reason in a Retry-After never trap", arguments: ["99999999999999999999", "1e9"])
    func wildRetryAfter(_ value: String) async throws {
        let outcome = try await generate("HTTP/1.1 429 Slow\r\nRetry-After: \(value)\r\nContent-Length: 0\r\n\r\n")
        #expect(outcome.failure?.isRetryable == true)
        #expect((outcome.failure?.retryAfterSeconds ?? 1) <= 600)
    }

    @Test(
        "heads that are none fail, and do not hang",
        arguments: [
            "nonsense\r\n\r\n", "HTTP/1.1 abc OK\r\n\r\n", "", "HTTP/1.1 200 OK\r\nX", "HTTP/0.9 \u{0}\r\n\r\n",
        ])
    func badHeads(_ answer: String) async throws {
        let outcome = try await generate(answer)
        #expect(outcome.failure != nil && outcome.finish == nil)
    }
}
