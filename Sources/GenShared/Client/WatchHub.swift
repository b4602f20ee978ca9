import Synchronization

/// What all watchers of a process share: one subscriber, one store, one timer.
package final class WatchHub: Sendable {
    /// Calls a body again and again, until the process ends.
    package typealias Ticker = @Sendable (Duration, @escaping @Sendable () -> Void) async -> Void

    private struct WeakInbox {
        weak var inbox: WatchInbox?
    }

    private struct State {
        var inboxes: [WeakInbox] = []
        var hasTimer = false
    }

    let store: any SubmissionStore
    let scheduler: any Scheduler
    private let channels: any ChannelSource
    private let ticker: Ticker
    private let state = Mutex(State())

    /// How exactly silence is measured; the first silence that counts is 300 ms.
    private static let resolution: Duration = .milliseconds(50)

    package init(
        store: any SubmissionStore, channels: any ChannelSource, scheduler: any Scheduler, ticker: @escaping Ticker
    ) {
        self.store = store
        self.channels = channels
        self.scheduler = scheduler
        self.ticker = ticker
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
            await ticker(Self.resolution) { [weak self] in self?.tick() }
        }
        return channels.subscribe(JobKeys(id).channel) { inbox.post(.channel($0)) }
    }

    private func tick() {
        let now = scheduler.now
        for entry in state.withLock({ $0.inboxes }) { entry.inbox?.tick(now) }
    }
}
