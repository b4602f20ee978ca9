import Glibc

/// The socket calls of the proxy.
enum FaultSocket {
    static func loopback(port: Int) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(UInt16(port)).bigEndian
        address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        return address
    }

    /// Connects to a port of 127.0.0.1, where an answer comes at once.
    /// - Returns: `nil` where nobody listens.
    static func connect(to port: Int) -> Int32? {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = loopback(port: port)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        guard result == 0 else {
            close(descriptor)
            return nil
        }
        prepare(descriptor)
        return descriptor
    }

    /// Non-blocking, and each write a packet.
    static func prepare(_ descriptor: Int32) {
        _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        var on: Int32 = 1
        setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    }

    /// The peer gets a reset instead of an end.
    static func closeWithReset(_ descriptor: Int32) {
        resetOnClose(descriptor)
        close(descriptor)
    }

    /// Whoever closes it sends a reset.
    static func resetOnClose(_ descriptor: Int32) {
        var linger = Glibc.linger(l_onoff: 1, l_linger: 0)
        setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &linger, socklen_t(MemoryLayout<Glibc.linger>.size))
    }
}

/// A blocking connection to a port of 127.0.0.1, for a test that speaks bytes.
/// - Returns: `nil` where nobody listens.
package func connectLoopback(_ port: Int) -> Int32? {
    guard let descriptor = FaultSocket.connect(to: port) else { return nil }
    _ = fcntl(descriptor, F_SETFL, 0)
    return descriptor
}
