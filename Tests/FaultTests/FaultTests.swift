import GenShared
import GenTestSupport
import Testing

/// The fault matrix on real servers: each case harms what the run's own RabbitMQ, Redis and workers are made of, and
/// checks the history afterwards.
///
/// One at a time: they share the servers. The cases are in files by what is harmed.
@Suite("Faults", .serialized)
enum FaultTests {}
