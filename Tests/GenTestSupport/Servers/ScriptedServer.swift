import Glibc
import Synchronization

/// A TCP server on 127.0.0.1 that does what a test says with each connection: for answers that no real server gives.
package final class ScriptedServer: Sendable {
    /// One accepted connection; all calls block, on a thread of the connection's own.
    package struct Connection: Sendable {
        let descriptor: Int32

        /// Reads until the end of an HTTP request's head; `nil` when the client has gone.
        package func readHead() -> String? {
            var bytes: [UInt8] = []
            var byte: UInt8 = 0
            while !bytes.suffix(4).elementsEqual([13, 10, 13, 10]) {
                guard read(descriptor, &byte, 1) == 1 else { return nil }
                bytes.append(byte)
            }
            return String(decoding: bytes, as: UTF8.self)
        }

        /// Reads a whole HTTP request, so that closing the connection does not take the answer with it.
        /// - Returns: the head; `nil` when the client has gone.
        package func readRequest() -> String? {
            guard let head = readHead() else { return nil }
            let length = head.split(whereSeparator: \.isNewline).lazy
                .filter { $0.lowercased().hasPrefix("content-length:") }
                .compactMap { Int($0.dropFirst(15).trimmingPrefix(while: \.isWhitespace)) }.first
            var left = length ?? 0
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while left > 0 {
                let count = read(descriptor, &buffer, min(left, buffer.count))
                guard count > 0 else { return nil }
                left -= count
            }
            return head
        }

        /// Reads what there is, waiting for the first byte; `nil` when the client has gone.
        package func receive() -> [UInt8]? {
            var buffer = [UInt8](repeating: 0, count: 4096)
            let count = read(descriptor, &buffer, buffer.count)
            return count > 0 ? Array(buffer[..<count]) : nil
        }

        /// Writes all of it.
        /// - Returns: false when the client has gone.
        @discardableResult
        package func send(_ text: String) -> Bool { send(Array(text.utf8)) }

        @discardableResult
        package func send(_ bytes: [UInt8]) -> Bool {
            var rest = bytes[...]
            while !rest.isEmpty {
                let count = rest.withUnsafeBytes {
                    Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { return false }
                rest = rest.dropFirst(count)
            }
            return true
        }

        /// Bytes that are taken without waiting; 0 when the client's window is full.
        package func sendSome(_ bytes: [UInt8]) -> Int {
            let flags = Int32(MSG_NOSIGNAL | MSG_DONTWAIT)
            return max(0, bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, flags) })
        }

        /// Waits until the client closes, at most that long.
        package func waitForClose(seconds: Int32) -> Bool {
            var buffer = [UInt8](repeating: 0, count: 1024)
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            while poll(&entry, 1, seconds * 1000) > 0 {
                if read(descriptor, &buffer, buffer.count) <= 0 { return true }
            }
            return false
        }
    }

    package let port: Int
    private let listener: Int32

    /// Starts to listen; the body runs for each connection, which is closed when it returns.
    package init(_ body: @escaping @Sendable (Connection) -> Void) {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        listener = descriptor
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        port = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                _ = bind(descriptor, generic, length)
                _ = listen(descriptor, 16)
                _ = getsockname(descriptor, generic, &length)
                return Int(UInt16(bigEndian: pointer.pointee.sin_port))
            }
        }
        Self.thread {
            while true {
                let accepted = accept(descriptor, nil, nil)
                guard accepted >= 0 else { return }
                Self.thread {
                    body(Connection(descriptor: accepted))
                    close(accepted)
                }
            }
        }
    }

    deinit {
        // Wakes the thread in accept, which then ends.
        shutdown(listener, Int32(SHUT_RDWR))
        close(listener)
    }

    private static func thread(_ body: @escaping @Sendable () -> Void) {
        final class Box {
            let body: @Sendable () -> Void
            init(_ body: @escaping @Sendable () -> Void) { self.body = body }
        }
        var thread = pthread_t()
        // The retain is balanced at the thread's start.
        pthread_create(
            &thread, nil,
            { context in
                if let context { Unmanaged<Box>.fromOpaque(context).takeRetainedValue().body() }
                return nil
            }, Unmanaged.passRetained(Box(body)).toOpaque())
        pthread_detach(thread)
    }
}

/// Lets a scripted server look again a little later; it has nothing to wait on, since it is the one that is waited for.
package func pause() { usleep(10_000) }
