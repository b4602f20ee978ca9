import Glibc

/// What a pinned thread looks after beside running its actor's jobs: a C handle with descriptors of its own.
///
/// All methods are called on the pinned thread, between jobs. An actor adopts it with `nonisolated` methods that
/// enter its isolation by `assumeIsolated`.
package protocol PollSource: AnyObject, Sendable {
    /// Does what can be done without waiting: sends what was posted, reads what has come, fires what is due.
    func service()
    /// Whether something was posted that `service` has not taken yet. Called right before sleeping.
    var hasWork: Bool { get }
    /// Sleeps until the handle has news, its next deadline, or the descriptor `wake` becomes readable.
    ///
    /// At most about a second: while it sleeps the thread holds the source, which may have lost its last owner.
    func wait(wake: Int32)
}

/// Sleeps in `poll(2)` on one descriptor and the wake descriptor.
/// - Parameter timeoutMilliseconds: at most this long; negative, and anything longer, means a second.
package func pollDescriptor(_ descriptor: Int32, events: Int32, wake: Int32, timeoutMilliseconds: Int32) {
    var descriptors = [
        pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
        pollfd(fd: descriptor, events: Int16(events), revents: 0),
    ]
    let limit: Int32 = 1000
    _ = Glibc.poll(
        &descriptors, descriptor < 0 ? 1 : 2, timeoutMilliseconds < 0 ? limit : min(timeoutMilliseconds, limit))
}
