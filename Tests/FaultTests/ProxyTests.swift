import Foundation
import Glibc
import GenTestSupport
import Synchronization
import Testing

/// The proxy does to a connection what it says.
@Suite("Fault proxy", .timeLimit(.minutes(1)))
struct ProxyTests {
    /// A server that sends back what it gets, a proxy before it, and a client that speaks through it.
    private func withEcho(_ body: (FaultProxy, LineClient) async throws -> Void) async throws {
        let server = ScriptedServer { connection in
            while let bytes = connection.receive(), connection.send(bytes) {}
        }
        let proxy = try FaultProxy(to: server.port)
        try await body(proxy, try LineClient(port: proxy.port))
        withExtendedLifetime(server) {}
    }

    @Test("it passes, slices, throttles and delays without changing a byte, and counts")
    func passes() async throws {
        try await withEcho { proxy, client in
            let text = String(repeating: "Grüße ", count: 300)
            for mode: FaultProxy.Mode in [
                .pass, .oneByteAtATime, .throttle(bytesPerSecond: 20_000), .delay(.milliseconds(50)),
            ] {
                proxy.set(mode)
                let before = proxy.bytes(.toServer)
                let began = ContinuousClock.now
                client.send(text)
                #expect(client.receive(text.utf8.count, seconds: 20) == text, "\(mode)")
                let took = ContinuousClock.now - began
                if case .delay = mode { #expect(took >= .milliseconds(100)) }
                if case .throttle = mode { #expect(took >= .milliseconds(50)) }
                // Counted a moment after they have gone.
                try await poll(within: .seconds(10)) { proxy.bytes(.toServer) == before + text.utf8.count }
            }
            #expect(proxy.connections == 1 && proxy.open == 1)
        }
    }

    @Test("nothing passes a blackhole until it heals; what is discarded never comes")
    func holds() async throws {
        try await withEcho { proxy, client in
            proxy.set(.blackhole, .toServer)
            client.send("held")
            #expect(client.receive(4, seconds: 0.2) == "")
            proxy.heal()
            #expect(client.receive(4, seconds: 10) == "held")
            proxy.set(.discard, .toClient)
            client.send("gone")
            #expect(client.receive(4, seconds: 0.2) == "")
            proxy.heal()
            client.send("here")
            #expect(client.receive(4, seconds: 10) == "here")
        }
    }

    @Test("a cut lets exactly so many bytes through, then ends the connection, once")
    func cuts() async throws {
        try await withEcho { proxy, client in
            proxy.cut(.init(.toClient, after: 5, .close))
            client.send("0123456789")
            #expect(client.receive(10, seconds: 10) == "01234")
            #expect(client.isEnded)
            #expect(proxy.waitingCuts == 0)
            let second = try LineClient(port: proxy.port)
            second.send("0123456789")
            #expect(second.receive(10, seconds: 10) == "0123456789")
            proxy.end(.reset)
            #expect(second.receive(1, seconds: 10) == "" && second.isReset)
        }
    }

    @Test("half closed, the server sees the end and its answer still comes")
    func halfCloses() async throws {
        let server = ScriptedServer { connection in
            while connection.receive() != nil {}
            connection.send("good-bye")
        }
        let proxy = try FaultProxy(to: server.port)
        let client = try LineClient(port: proxy.port)
        client.send("hello")
        try await poll(within: .seconds(10)) { proxy.bytes(.toServer) == 5 }
        proxy.end(.halfClose)
        #expect(client.receive(8, seconds: 10) == "good-bye")
        withExtendedLifetime(server) {}
    }

    @Test("a proxy that refuses, or whose server is not there, ends connections at once")
    func refuses() async throws {
        let proxy = try FaultProxy(to: 1)
        let client = try LineClient(port: proxy.port)
        #expect(client.receive(1, seconds: 10) == "" && client.isReset)
    }
}

/// A blocking client of a test.
private final class LineClient {
    private let descriptor: Int32
    private(set) var isEnded = false
    private(set) var isReset = false

    init(port: Int) throws {
        guard let descriptor = connectLoopback(port) else { throw FaultError("nobody listens on \(port)") }
        self.descriptor = descriptor
    }

    deinit { close(descriptor) }

    func send(_ text: String) {
        let bytes = Array(text.utf8)
        _ = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
    }

    /// Up to that many bytes, or what came in the time.
    func receive(_ count: Int, seconds: Double) -> String {
        var bytes: [UInt8] = []
        let deadline = ContinuousClock.now + .seconds(seconds)
        while bytes.count < count {
            let left = max(0, (deadline - ContinuousClock.now) / .milliseconds(1))
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            guard Glibc.poll(&entry, 1, Int32(left)) > 0 else { break }
            var buffer = [UInt8](repeating: 0, count: count - bytes.count)
            let read = Glibc.read(descriptor, &buffer, buffer.count)
            if read == 0 { isEnded = true }
            if read < 0 { isReset = errno == ECONNRESET }
            guard read > 0 else { break }
            bytes += buffer[..<read]
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
