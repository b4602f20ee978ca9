/// What a watcher sees.
public enum WatchItem: Sendable, Equatable {
    /// The next event.
    case event(JobEvent)
    /// Events are gone from the log: what follows starts over or begins later, and is no continuation.
    case historyLost
}

/// Why a watch ended without the job's end.
public enum WatchError: Error, Sendable, Equatable {
    /// There is no such job.
    case unknownJob
}

/// A job's events, from any point on, to its end: without gap, without double, whenever one joins.
///
/// Pull-based: a slow reader holds nothing up. Ends after the terminal event. Cancelling the task ends it with
/// `CancellationError`; a Redis that is away is waited for, and `troubles` tells of it.
public struct JobWatch: AsyncSequence, Sendable {
    /// The element.
    public typealias Element = WatchItem

    let hub: WatchHub
    let id: JobID
    let start: EventID
    let waitForJob: Duration
    let onTrouble: (@Sendable (String) -> Void)?

    package init(
        hub: WatchHub, id: JobID, start: EventID = .origin, waitForJob: Duration = .zero,
        onTrouble: (@Sendable (String) -> Void)? = nil
    ) {
        self.hub = hub
        self.id = id
        self.start = start
        self.waitForJob = waitForJob
        self.onTrouble = onTrouble
    }

    /// An iterator with a subscription of its own.
    public func makeAsyncIterator() -> Iterator {
        Iterator(watch: self)
    }

    /// Reads the events of one watch, for one task.
    public struct Iterator: AsyncIteratorProtocol {
        private let watch: JobWatch
        private let inbox = WatchInbox()
        private var machine: WatchMachine
        private var subscription: ChannelSubscription?
        private var ready: [WatchItem] = []
        private var position = 0
        private var isEnded = false
        private var isUnknown = false
        private var patience = WatchPatience()
        private let givesUpAt: ContinuousClock.Instant

        fileprivate init(watch: JobWatch) {
            self.watch = watch
            machine = WatchMachine(from: watch.start, waitsForJob: watch.waitForJob > .zero)
            givesUpAt = watch.hub.scheduler.now + watch.waitForJob
        }

        /// The next item; `nil` after the end.
        /// - Throws: `WatchError.unknownJob`; `CancellationError`.
        public mutating func next() async throws -> WatchItem? {
            if subscription == nil { subscription = await watch.hub.listen(watch.id, inbox) }
            while position == ready.count {
                ready.removeAll(keepingCapacity: true)
                position = 0
                if isUnknown { throw WatchError.unknownJob }
                if isEnded { return nil }
                try await turn()
            }
            defer { position += 1 }
            return ready[position]
        }

        private mutating func turn() async throws {
            let signals = await inbox.take(deadline: watch.hub.scheduler.now + patience.current)
            try Task.checkCancellation()
            for signal in signals {
                switch signal {
                case .channel(.subscribed): try await perform(machine.handle(.subscribed))
                case .channel(.lost(let reason)):
                    watch.onTrouble?(reason)
                    try await perform(machine.handle(.lost))
                case .channel(.message(let text)):
                    // Anybody may publish anything; what is no event is ignored, and the log has what matters.
                    if let event = JobEvent(json: text) { try await perform(machine.handle(.live(event))) }
                case .silence:
                    patience.grow(watch.hub.scheduler)
                    try await perform(machine.handle(.silence))
                }
            }
            if !machine.knowsJob, machine.last == .origin, watch.waitForJob > .zero,
                watch.hub.scheduler.now >= givesUpAt
            {
                isUnknown = true
            }
        }

        private mutating func perform(_ first: [WatchMachine.Action]) async throws {
            var actions = first[...]
            while let action = actions.popFirst() {
                try Task.checkCancellation()
                switch action {
                case .show(let event):
                    patience.reset()
                    ready.append(.event(event))
                case .showHistoryLost: ready.append(.historyLost)
                case .read(let from): actions.append(contentsOf: await read(from))
                case .expire: await expire()
                case .endUnknown:
                    isUnknown = true
                    subscription?.cancel()
                case .end:
                    isEnded = true
                    subscription?.cancel()
                }
            }
        }

        /// Events that are read from the log at once.
        private static let pageSize = 512

        private mutating func read(_ from: EventID) async -> [WatchMachine.Action] {
            do {
                // The record first: an end that it tells of is then in the log that is read after it.
                let record = try await watch.hub.store.record(watch.id)
                let page = try await watch.hub.store.events(watch.id, from: from, limit: Self.pageSize)
                let events = page.lines.compactMap(JobEvent.init(json:))
                return machine.handle(
                    .page(events, isWhole: page.isWhole, record, at: watch.hub.scheduler.timestamp))
            } catch {
                watch.onTrouble?("\(error)")
                return machine.readingFailed()
            }
        }

        private func expire() async {
            // Whoever sees it first writes the end; the log brings it. A failure is met again by the next silence.
            do { try await watch.hub.store.expire(watch.id) } catch { watch.onTrouble?("\(error)") }
        }
    }
}

/// How long silence is borne before the log is asked: 0.3 s, doubling to 10 s, with jitter, so that ten thousand
/// watchers of a silent system do not ask in step.
struct WatchPatience {
    private var backoff = Backoff(first: .milliseconds(300), limit: .seconds(10))
    private(set) var current: Duration = .milliseconds(300)

    mutating func grow(_ scheduler: any Scheduler) {
        current = max(.milliseconds(300), backoff.next(on: scheduler))
    }

    mutating func reset() {
        backoff.reset()
        current = .milliseconds(300)
    }
}
