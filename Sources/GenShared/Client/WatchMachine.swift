/// The rules by which a watcher turns a channel that may lose messages and a log that never does into one stream
/// without gap and without double.
///
/// Each event names the one before it. A live event counts only if that one is the last that was shown; anything
/// else is answered by reading the log from the last one on. Pure: takes what happened, returns what to do.
struct WatchMachine {
    enum Input {
        /// Whatever is published from here on will be heard.
        case subscribed
        /// Messages may have been missed.
        case lost
        case live(JobEvent)
        /// The log from the last event on, and the record. `isWhole`: there is no more at the moment.
        case page([JobEvent], isWhole: Bool, JobRecord?)
        /// Nothing was heard for a while.
        case silence
    }

    enum Action: Equatable {
        case show(JobEvent)
        /// Events after the last one shown are gone; what follows starts over.
        case showHistoryLost
        case read(from: EventID)
        /// The job's time in the queue is over and nobody has said so yet.
        case expire
        /// There is no such job.
        case endUnknown
        /// The end was shown.
        case end
    }

    /// Live events that are kept while the log is read; more are left to the log.
    private static let heldLimit = 512

    private(set) var last: EventID
    private var isReading = false
    private var held: [JobEvent] = []
    private var mustReadAgain = false
    private var isEnded = false
    private let waitsForJob: Bool

    /// - Parameters:
    ///   - start: the last event that was seen before; `.origin` for none.
    ///   - waitsForJob: whether a job that does not exist yet is waited for.
    init(from start: EventID, waitsForJob: Bool) {
        last = start
        self.waitsForJob = waitsForJob
    }

    mutating func handle(_ input: Input) -> [Action] {
        guard !isEnded else { return [] }
        switch input {
        case .subscribed, .silence: return read()
        case .lost: return []
        case .live(let event): return live(event)
        case .page(let events, let isWhole, let record): return page(events, isWhole, record)
        }
    }

    private mutating func read() -> [Action] {
        guard !isReading else {
            mustReadAgain = true
            return []
        }
        isReading = true
        return [.read(from: max(last, .queued))]
    }

    /// The log could not be read; the next silence tries again.
    mutating func readingFailed() -> [Action] {
        isReading = false
        held = []
        return []
    }

    private mutating func live(_ event: JobEvent) -> [Action] {
        if isReading {
            if held.count < Self.heldLimit { held.append(event) } else { mustReadAgain = true }
            return []
        }
        if event.id <= last { return [] }
        // The first event follows `queued`, which is made from the record and may not have been shown.
        if event.previous == last || (last == .origin && event.id == .queued) { return show(event) }
        return read()
    }

    private mutating func page(_ events: [JobEvent], _ isWhole: Bool, _ record: JobRecord?) -> [Action] {
        isReading = false
        guard let record else { return missing() }
        var actions: [Action] = []
        if last == .origin {
            actions += show(JobEvent(id: .queued, previous: .origin, content: .queued))
        }
        var rest = events[...]
        if last > .queued {
            if rest.first?.id == last {
                rest = rest.dropFirst()
            } else if record.last != last || !events.isEmpty {
                // The log does not begin where it should: it was trimmed, lost, or has run out.
                actions.append(.showHistoryLost)
                last = .queued
                // What is there at all is seen from the start on.
                if events.isEmpty { return actions + read() }
            }
        }
        if record.ending != nil, record.last == last {
            isEnded = true
            return actions + [.end]
        }
        if rest.isEmpty, last == .queued, let ending = record.ending {
            return actions + showEnding(ending, record)
        }
        for event in rest where !isEnded {
            guard event.previous == last else {
                if event.id > last {
                    actions.append(.showHistoryLost)
                    actions += show(event)
                }
                continue
            }
            actions += show(event)
        }
        guard !isEnded else { return actions }
        if !isWhole {
            mustReadAgain = false
            return actions + read()
        }
        if let expiresAt = record.expiresAt, record.state == .queued || record.state == .retrying,
            expiresAt <= Timestamp.now
        {
            actions.append(.expire)
        }
        return actions + replayHeld()
    }

    /// Live events that came while the log was read: most of them were in it.
    private mutating func replayHeld() -> [Action] {
        let events = held
        held = []
        var actions: [Action] = []
        for event in events where !isEnded { actions += live(event) }
        if mustReadAgain, !isEnded {
            mustReadAgain = false
            actions += read()
        }
        return actions
    }

    private mutating func missing() -> [Action] {
        held = []
        guard !waitsForJob || last != .origin else { return [] }
        isEnded = true
        return [.endUnknown]
    }

    private mutating func show(_ event: JobEvent) -> [Action] {
        last = event.id
        guard event.isTerminal else { return [.show(event)] }
        isEnded = true
        return [.show(event), .end]
    }

    /// The log is gone: the record's end is shown as one event.
    private mutating func showEnding(_ ending: JobEvent.Content, _ record: JobRecord) -> [Action] {
        show(JobEvent(id: record.last, previous: last, content: ending))
    }
}
