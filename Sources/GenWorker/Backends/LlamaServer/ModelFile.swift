import FoundationEssentials
import GenShared
import Glibc

/// Looks at a model before minutes are spent on loading it.
enum ModelFile {
    /// - Throws: `JobFailure` that says in one line what is wrong with it and what to do.
    static func check(_ path: String, backend: String) throws(JobFailure) {
        let file = try Look(path, backend)
        guard file.head.starts(with: Array("GGUF".utf8)) else {
            throw JobFailure(
                .unavailable, "\(backend): \(path) is not a GGUF model; convert it, or name another file",
                backend: backend)
        }
        guard let available = Memory.available else { return }
        guard file.size <= available else {
            throw JobFailure(
                .unavailable,
                "\(backend): \(path) needs \(file.size >> 20) MiB of memory, \(available >> 20) MiB are free; "
                    + "choose a smaller model or quantisation", backend: backend)
        }
    }

    private struct Look {
        let size: Int
        let head: [UInt8]

        init(_ path: String, _ backend: String) throws(JobFailure) {
            func wrong(_ reason: String) -> JobFailure {
                JobFailure(.unavailable, "\(backend): \(reason)", backend: backend)
            }
            // Without O_NONBLOCK a named pipe would hold us for ever.
            let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
            guard descriptor >= 0 else {
                guard errno != ENOENT else {
                    throw wrong("there is no model file at \(path); set `model` or GEN_MODEL")
                }
                throw wrong("the model \(path) cannot be read: \(String(cString: strerror(errno)))")
            }
            defer { close(descriptor) }
            // Of what the path leads to: models often are links into a cache.
            var info = stat()
            guard fstat(descriptor, &info) == 0, info.st_mode & S_IFMT == S_IFREG else {
                throw wrong("the model \(path) is not a plain file")
            }
            size = info.st_size
            var start = [UInt8](repeating: 0, count: 4)
            let count = read(descriptor, &start, start.count)
            head = Array(start.prefix(max(0, count)))
        }
    }
}

/// The memory that a new process can have.
enum Memory {
    /// Bytes: what the kernel calls available, or what the control group still allows, whichever is less.
    static var available: Int? {
        let machine = line("MemAvailable:", of: "/proc/meminfo").map { $0 << 10 }
        let group = number("/sys/fs/cgroup/memory.max").flatMap { limit in
            number("/sys/fs/cgroup/memory.current").map { max(0, limit - $0) }
        }
        return [machine, group].compactMap(\.self).min()
    }

    private static func number(_ path: String) -> Int? {
        text(path).flatMap { Int($0.split(whereSeparator: \.isWhitespace).first ?? "") }
    }

    private static func line(_ name: String, of path: String) -> Int? {
        text(path)?.split(separator: "\n").first { $0.hasPrefix(name) }
            .flatMap { Int($0.split(separator: " ").dropFirst().first ?? "") }
    }

    private static func text(_ path: String) -> String? {
        // Not every machine has control groups: no file, no limit.
        FileManager.default.contents(atPath: path).map { String(decoding: $0, as: UTF8.self) }
    }
}
