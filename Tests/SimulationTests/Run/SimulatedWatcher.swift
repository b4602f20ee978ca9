import GenShared
import GenTestSupport

/// Somebody who watches a job with the product's own watch, and what they saw.
///
/// `@unchecked`: see `Simulation`.
final class SimulatedWatcher: @unchecked Sendable {
    let id: JobID
    private(set) var isDone = false
    private(set) var wasUnknown = false
    private(set) var ending: JobEvent.Content?
    private(set) var text = ""
    private var last: EventID
    private let isFromStart: Bool
    private var hasMarker = false
    private let checker: Checker

    init(_ id: JobID, from start: EventID, checker: Checker) {
        self.id = id
        last = start
        isFromStart = start == .origin
        self.checker = checker
    }

    func run(_ hub: WatchHub) async {
        let watch = JobWatch(hub: hub, id: id, start: last, waitForJob: .seconds(60))
        var iterator = watch.makeAsyncIterator()
        do {
            while let item = try await iterator.next() { take(item) }
            if ending == nil { checker.violate("\(id): a watch ended without an end") }
        } catch is WatchError { wasUnknown = true } catch {
            // Its process died.
        }
        isDone = true
    }

    private func take(_ item: WatchItem) {
        switch item {
        case .historyLost:
            hasMarker = true
            text = ""
        case .event(let event):
            if !hasMarker {
                if event.id <= last { checker.violate("\(id): a watcher saw \(event.id) after \(last)") }
                if event.previous != last, last != .origin, !event.isTerminal {
                    checker.violate("\(id): a watcher missed what is between \(last) and \(event.id)")
                }
            }
            hasMarker = false
            last = event.id
            if case .started = event.content { text = "" }
            if case .chunk(let piece) = event.content { text += piece }
            if event.isTerminal { ending = event.content }
        }
    }

    /// Judged at the end of the run.
    func judge(_ record: JobRecord?) {
        // A submission that was refused while Redis was away leaves a record that waits for ever, and so do watchers.
        guard isDone else {
            if record?.state.isTerminal == true { checker.violate("\(id): a watch never ended") }
            return
        }
        guard let ending, let record else { return }
        if ending.terminalState != record.state, !checker.wasRolledBack {
            checker.violate("\(id): a watcher saw \(ending.terminalState?.rawValue ?? "?"), it is \(record.state)")
        }
        if case .completed(let completion) = ending, isFromStart, text != completion.result, !text.isEmpty {
            checker.violate("\(id): a watcher saw \"\(text)\", the result is \"\(completion.result)\"")
        }
    }
}
