import GenShared
import GenTestSupport
import Testing

/// The fault matrix on real servers: each case harms what the run's own RabbitMQ, Redis and workers are made of, and
/// checks the history afterwards.
///
/// One at a time: they share the servers. The cases are in files by what is harmed.
@Suite("Faults", .serialized)
enum FaultTests {}

extension Tag {
    /// Part of `./ops/test`: the cases that find most in the least time.
    @Tag static var short: Self
}
