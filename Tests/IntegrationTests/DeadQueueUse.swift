import Testing

/// Suites that look into the dead queue, one after the other: whoever looks hides its messages from others meanwhile.
@Suite("Dead queue use", .serialized)
enum DeadQueueUse {}
