import Glibc

/// Standard output and standard error by their descriptors, without buffering: a stream is seen as it comes.
package enum Terminal {
    /// Whether standard output is a terminal.
    package static var isInteractive: Bool { isatty(1) == 1 }
    /// Whether standard error is a terminal.
    package static var isErrorInteractive: Bool { isatty(2) == 1 }

    /// Writes to standard output.
    /// - Returns: false when nobody reads it any more, as with `| head -1`.
    @discardableResult
    package static func write(_ text: String) -> Bool { write(Array(text.utf8), to: 1) }

    /// Writes a line to standard error; when nobody reads it, it is lost.
    package static func writeError(_ text: String) { writeErrorText(text + "\n") }

    /// Writes text to standard error as it stands.
    package static func writeErrorText(_ text: String) { write(Array(text.utf8), to: 2) }

    @discardableResult
    private static func write(_ bytes: [UInt8], to descriptor: Int32) -> Bool {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) }
            if count < 0 {
                guard errno == EINTR || errno == EAGAIN else { return false }
                // A descriptor that does not block, and whose reader is slow.
                var descriptors = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
                _ = poll(&descriptors, 1, 1000)
                continue
            }
            rest = rest.dropFirst(count)
        }
        return true
    }

    /// Reads standard input to its end.
    /// - Parameter limit: bytes; one more ends the reading.
    /// - Returns: `nil` where it cannot be read, or is longer.
    package static func readInput(limit: Int) -> [UInt8]? {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(0, &buffer, buffer.count)
            if count == 0 { return bytes }
            guard count > 0 else {
                if errno == EINTR { continue }
                return nil
            }
            bytes.append(contentsOf: buffer[..<count])
            if bytes.count > limit { return nil }
        }
    }
}
