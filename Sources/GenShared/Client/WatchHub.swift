import Synchronization

/// What all watchers of a process share: one subscriber, one command connection, one timer.
final class WatchHub: Sendable {
    private struct WeakInbox {
        weak var inbox: WatchInbox?
    }

    private struct State {
        var inboxes: [WeakInbox] = []
        var hasTimer = false
    }

    let store: any SubmissionStore
    private let subscriber: RedisSubscriber
    private let connection: RedisConnection
    private let state = Mutex(State())

    /// How exactly silence is measured; the first silence that counts is 300 ms.
    private static let resolution: Duration = .milliseconds(50)

    init(store: any SubmissionStore, subscriber: RedisSubscriber, connection: RedisConnection) {
        self.store = store
        self.subscriber = subscriber
        self.connection = connection
    }

    /// Fills the inbox from the job's channel until the subscription is cancelled.
    func listen(_ id: JobID, _ inbox: WatchInbox) async -> ChannelSubscription {
        let mustStart = state.withLock { state in
            state.inboxes.removeAll { $0.inbox == nil }
            state.inboxes.append(WeakInbox(inbox: inbox))
            defer { state.hasTimer = true }
            return !state.hasTimer
        }
        if mustStart {
            await connection.every(Self.resolution) { [weak self] in self?.tick() }
        }
        return subscriber.subscribe(JobKeys(id).channel) { inbox.post(.channel($0)) }
    }

    private func tick() {
        let now = ContinuousClock.now
        for entry in state.withLock({ $0.inboxes }) { entry.inbox?.tick(now) }
    }
}
