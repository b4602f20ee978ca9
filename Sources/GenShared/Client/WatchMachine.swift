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
        case page([JobEvent], isWhole: Bool, JobRecord?, at: Timestamp = .now)
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

    /// With the pauses of silence between them, about half a minute: a worker that runs the job finds itself fenced within
    /// seconds, and the message that it hands back makes the record anew.
    private static let missingLimit = 8
    /// Live events that are kept while the log is read; more are left to the log.
    private static let heldLimit = 512

    private(set) var last: EventID
    /// Whether the job was there, so that it is not unknown while it is missing.
    var knowsJob: Bool { hasSeenRecord }
    /// The event that was shown last, to know it again: a store that was set back may use its id for another.
    private var lastShown: JobEvent?
    private var hasSeenRecord = false
    /// Looks at a record that was there and is gone, as after a restart of an empty store.
    private var missingLooks = 0
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
        case .page(let events, let isWhole, let record, let now): return page(events, isWhole, record, now)
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

    private mutating func page(
        _ events: [JobEvent], _ isWhole: Bool, _ record: JobRecord?, _ now: Timestamp
    ) -> [Action] {
        isReading = false
        let before = last
        guard let record else { return missing() }
        hasSeenRecord = true
        missingLooks = 0
        var actions: [Action] = []
        if last == .origin {
            actions += show(JobEvent(id: .queued, previous: .origin, content: .queued))
        }
        var rest = events[...]
        if last > .queued {
            if let first = rest.first, first.id == last {
                // The same id with other content: the store was set back, and the job has gone another way since.
                guard lastShown == nil || lastShown == first else { return actions + startOver() + read() }
                rest = rest.dropFirst()
            } else if record.last != last || !events.isEmpty {
                // The log does not begin where it should: it was trimmed, lost, or has run out.
                actions += startOver()
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
        // A page that led nowhere, full of what is no event, would be read again and again: silence will ask again.
        if !isWhole, last != before {
            mustReadAgain = false
            return actions + read()
        }
        if let expiresAt = record.expiresAt, record.state == .queued || record.state == .retrying,
            expiresAt <= now
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
        if hasSeenRecord {
            missingLooks += 1
            if missingLooks == 1 {
                last = .origin
                return [.showHistoryLost]
            }
            guard missingLooks > Self.missingLimit else { return [] }
        } else if waitsForJob, last == .origin {
            return []
        }
        isEnded = true
        return [.endUnknown]
    }

    /// What was shown is no part of what the store has now.
    private mutating func startOver() -> [Action] {
        (last, lastShown, held) = (.queued, nil, [])
        return [.showHistoryLost]
    }

    private mutating func show(_ event: JobEvent) -> [Action] {
        (last, lastShown) = (event.id, event)
        guard event.isTerminal else { return [.show(event)] }
        isEnded = true
        return [.show(event), .end]
    }

    /// The log is gone: the record's end is shown as one event.
    private mutating func showEnding(_ ending: JobEvent.Content, _ record: JobRecord) -> [Action] {
        show(JobEvent(id: record.last, previous: last, content: ending))
    }
}
