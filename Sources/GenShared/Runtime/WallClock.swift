import Glibc

extension Timestamp {
    /// This moment by the machine's clock.
    ///
    /// Ages of leases are never judged by it: Redis' own clock counts there.
    package static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(milliseconds: Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000)
    }
}

extension Duration {
    /// Whole milliseconds, at least 0, at most 100 days.
    package var milliseconds: Int {
        let (seconds, attoseconds) = components
        guard seconds >= 0 else { return 0 }
        guard seconds < 100 * 86_400 else { return 100 * 86_400_000 }
        return max(0, Int(seconds) * 1000 + Int(attoseconds / 1_000_000_000_000_000))
    }
}
