import Glibc

/// What is to be done where the process has run into a limit of the system without which it cannot go on.
enum ProcessLimit {
    /// Says so in one line and ends the process: a trap of a release build says nothing.
    static func end(_ reason: String) -> Never {
        let line = "\(reason); raise the limits of this process (ulimit -n, -u, -v, or its container's memory)\n"
        _ = line.utf8.withContiguousStorageIfAvailable { Glibc.write(2, $0.baseAddress, $0.count) }
        exit(1)
    }
}
