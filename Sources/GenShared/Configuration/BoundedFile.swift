import Glibc

/// Reads small files whose content a person or an orchestrator wrote.
enum BoundedFile {
    enum Failure: Error {
        case unreadable(String)
        case tooLarge
    }

    /// Reads a file, a pipe or whatever else can be read, to its end.
    ///
    /// At most `limit` bytes are taken: an endless one, such as `/dev/zero`, ends there.
    static func read(_ path: String, limit: Int) throws(Failure) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw .unreadable(String(cString: strerror(errno))) }
        defer { close(descriptor) }
        var content: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(descriptor, &buffer, buffer.count)
            if count == 0 { return content }
            guard count > 0 else {
                if errno == EINTR { continue }
                throw .unreadable(String(cString: strerror(errno)))
            }
            content.append(contentsOf: buffer[..<count])
            guard content.count <= limit else { throw .tooLarge }
        }
    }
}
