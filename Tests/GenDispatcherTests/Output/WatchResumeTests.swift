import GenShared
import Testing

@testable import GenDispatcher

/// A watch that is broken off and goes on with `--from`: both outputs together are that of one watch.
@Suite("Watch output, resumed")
struct WatchResumeTests {
    private let id = JobID(atMilliseconds: 0)
    private let events: [JobEvent]

    init() {
        var events: [JobEvent] = []
        var last = EventID.origin
        func add(_ id: EventID, _ content: JobEvent.Content) {
            events.append(JobEvent(id: id, previous: last, content: content))
            last = id
        }
        add(.queued, .queued)
        for attempt in UInt64(1)...2 {
            add(
                EventID(attempt: attempt, sequence: 1),
                .started(attempt: Int(attempt), worker: "w", backend: nil, model: nil, restarted: attempt > 1))
            for text in ["One", " two", " three"] { add(last.next, .chunk(text)) }
            if attempt == 1 { add(last.next, .retrying(reason: "failure", error: nil, delaySeconds: 2)) }
        }
        let stats = Stats(queueMilliseconds: 0, firstTokenMilliseconds: 1, totalMilliseconds: 2, tokensPerSecond: nil)
        add(
            last.next,
            .completed(Completion(result: "One two three", finishReason: .stop, usage: nil, stats: stats)))
        self.events = events
    }

    private func shown(_ events: ArraySlice<JobEvent>, from start: EventID = .origin, _ style: WatchStyle = .text)
        -> String
    {
        var renderer = WatchRenderer(style: style, isTerminal: false, start: start)
        return events.map { renderer.render(.event($0), id: id).text }.joined()
    }

    @Test("one watch shows each attempt once, with a marker between, and the result not again")
    func whole() { #expect(shown(events[...]) == "One two three\n[attempt 2 starts over]\nOne two three\n") }

    @Test("broken off after any event and resumed, nothing is doubled, glued on or lost")
    func everyBreak() {
        for index in events.indices.dropLast() {
            let resumed = shown(events[(index + 1)...], from: events[index].id)
            #expect(shown(events[...index]) + resumed == shown(events[...]), "after \(events[index].id)")
        }
        for style in [WatchStyle.json, .jsonEnd] {
            let resumed = shown(events[5...], from: events[4].id, style)
            #expect(shown(events[..<5], style) + resumed == shown(events[...], style))
        }
    }

    @Test("where the log is gone the result is printed, also for a watch that goes on")
    func logGone() {
        for start in [EventID.origin, events[3].id] {
            var renderer = WatchRenderer(style: .text, isTerminal: false, start: start)
            let marker = start == .origin ? "" : renderer.render(.historyLost, id: id).text
            #expect(start == .origin || (marker.hasPrefix("\n[") && marker.hasSuffix("]\n")))
            #expect(renderer.render(.event(events[events.count - 1]), id: id).text == "One two three\n")
        }
    }

    @Test("lost history is marked on a line of its own in every style that shows events")
    func historyLost() {
        var text = WatchRenderer(style: .text, isTerminal: false)
        _ = text.render(.event(events[2]), id: id)
        #expect(text.render(.historyLost, id: id).text.hasPrefix("\n["))
        #expect(text.render(.event(events[3]), id: id).text == " two")
        var json = WatchRenderer(style: .json, isTerminal: false)
        #expect(json.render(.historyLost, id: id).text == "{\"type\":\"history_lost\"}\n")
        for style in [WatchStyle.jsonEnd, .result, .silent] {
            var quiet = WatchRenderer(style: style, isTerminal: false)
            #expect(quiet.render(.historyLost, id: id) == WatchRenderer.Output())
        }
    }

    @Test("why an attempt ended is told on standard error, not in the text")
    func retrying() {
        var renderer = WatchRenderer(style: .text, isTerminal: false)
        let failure = JobFailure(.backendError, "oops\u{1B}[2J")
        let event = JobEvent(
            id: EventID(attempt: 1, sequence: 2), previous: EventID(attempt: 1, sequence: 1),
            content: .retrying(reason: "failure", error: failure, delaySeconds: 10))
        let output = renderer.render(.event(event), id: id)
        #expect(output.text == "" && output.notes.count == 1 && output.notes[0].contains("oops"))
        #expect(!output.notes[0].contains("\u{1B}") && output.notes[0].contains("10"))
    }
}
