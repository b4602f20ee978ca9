import Glibc

/// Reads small files whose content a person or an orchestrator wrote.
package enum BoundedFile {
    package enum Failure: Error {
        case unreadable(String)
        case tooLarge
        /// A pipe into which nobody writes.
        case silent
    }

    package struct Content: Sendable {
        package var bytes: [UInt8]
        /// Whether users beside owner and group may change it; only a plain file has an owner who cares.
        package var othersMayWrite = false
        /// Whether users beside owner and group may read it.
        package var othersMayRead = false
    }

    /// Reads a file, a pipe or whatever else can be read, to its end.
    ///
    /// At most `limit` bytes are taken: an endless one, such as `/dev/zero`, ends there.
    /// - Parameter patience: without a byte, after which a pipe is given up.
    package static func read(
        _ path: String, limit: Int, patience: Duration = .seconds(10)
    ) throws(Failure) -> Content {
        // Without O_NONBLOCK a pipe without a writer would hold us for ever, even before it is read.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { throw .unreadable(String(cString: strerror(errno))) }
        defer { close(descriptor) }
        var content = Content(bytes: [])
        // Of the open file, so that it cannot be exchanged in between.
        var info = stat()
        if fstat(descriptor, &info) == 0, info.st_mode & S_IFMT == S_IFREG {
            content.othersMayWrite = info.st_mode & S_IWOTH != 0
            content.othersMayRead = info.st_mode & S_IROTH != 0
        }
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            let ready = poll(&entry, 1, Int32(clamping: patience.milliseconds))
            if ready == 0 { throw .silent }
            let count = ready < 0 ? -1 : Glibc.read(descriptor, &buffer, buffer.count)
            if count == 0 { return content }
            guard count > 0 else {
                if errno == EINTR || errno == EAGAIN { continue }
                throw .unreadable(String(cString: strerror(errno)))
            }
            content.bytes.append(contentsOf: buffer[..<count])
            guard content.bytes.count <= limit else { throw .tooLarge }
        }
    }
}
