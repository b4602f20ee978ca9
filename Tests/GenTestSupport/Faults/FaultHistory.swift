import Glibc
import GenShared
import Synchronization

/// The history of a fault test: written to a file as it happens, so that it is there whatever becomes of the test.
package final class FaultHistory: Sendable {
    /// Where it is.
    package let path: String
    private let descriptor: Int32
    private let lines = Mutex(0)

    /// Begins a new history.
    package init(path: String) throws {
        self.path = path
        descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw FaultError("the history \(path) cannot be written: error \(errno)") }
    }

    deinit { close(descriptor) }

    /// Adds a line.
    package func add(_ entry: HistoryEntry) {
        let bytes = Array("\(entry.json(at: Timestamp.now.milliseconds))\n".utf8)
        lines.withLock { count in
            count += 1
            var rest = bytes[...]
            while !rest.isEmpty {
                let written = rest.withUnsafeBytes { write(descriptor, $0.baseAddress, $0.count) }
                // A full disk shows in the check: what was not written is missing there.
                guard written > 0 else { return }
                rest = rest.dropFirst(written)
            }
        }
    }

    /// Reads all lines, one at a time: a long run's history does not fit into memory comfortably.
    package static func read(_ path: String, _ body: (HistoryEntry) -> Void) throws {
        guard let file = fopen(path, "re") else { throw FaultError("the history \(path) cannot be read") }
        defer { fclose(file) }
        var line: UnsafeMutablePointer<CChar>?
        var capacity = 0
        defer { free(line) }
        var number = 0
        while case let length = getline(&line, &capacity, file), length > 0 {
            number += 1
            guard let line else { break }
            let bytes = UnsafeRawBufferPointer(start: line, count: length)
            guard let entry = HistoryEntry(json: String(decoding: bytes, as: UTF8.self)) else {
                throw FaultError("\(path), line \(number) is no entry")
            }
            body(entry)
        }
    }
}
