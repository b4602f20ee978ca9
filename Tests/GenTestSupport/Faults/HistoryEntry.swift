import Foundation
package import GenShared

/// One line of a fault test's history: what was asked, what was seen, how it stood at the end.
package enum HistoryEntry: Sendable, Equatable {
    /// How a submission ended.
    package enum Submission: String, Sendable {
        /// RabbitMQ confirmed it: it must end.
        case accepted
        /// It may have been taken: it may end, or not exist.
        case unknown
        /// It was certainly not taken: it must not run.
        case refused
    }

    /// How a watcher's view ended.
    package enum ViewEnd: String, Sendable {
        /// It saw the job's end.
        case ended
        /// The test stopped it, or killed it.
        case stopped
        /// There was no such job.
        case unknownJob
    }

    /// What a watcher saw, in order; `nil` stands for the marker that history was lost.
    package struct View: Sendable, Equatable {
        package var watcher: String
        package var job: String
        package var from: EventID
        package var events: [String?]
        package var end: ViewEnd

        package init(watcher: String, job: String, from: EventID, events: [String?], end: ViewEnd) {
            self.watcher = watcher
            self.job = job
            self.from = from
            self.events = events
            self.end = end
        }
    }

    /// A record and its log.
    package struct Final: Sendable, Equatable {
        package var job: String
        package var state: String
        package var attempt: Int
        package var result: String?
        package var log: [String]

        package init(job: String, state: String, attempt: Int, result: String?, log: [String]) {
            self.job = job
            self.state = state
            self.attempt = attempt
            self.result = result
            self.log = log
        }
    }

    /// A job was handed in. `expected` is what its backend must say.
    case submitted(job: String, Submission, expected: String?)
    /// A cancel was answered.
    case cancelled(job: String, reply: String)
    case viewed(View)
    /// How a job stood when all was over.
    case final(Final)
    /// A line of `gen:done`.
    case done(job: String, state: String)
    /// What is left in a queue.
    case queue(name: String, messages: Int)
    /// Something was broken or mended.
    case fault(String)
    /// Progress of a long run.
    case note(String)
}

extension HistoryEntry {
    /// The line.
    /// - Parameter milliseconds: when it was written.
    package func json(at milliseconds: Int64) -> String {
        var writer = JSONWriter()
        writer.beginObject()
        writer.key("at")
        writer.value(milliseconds)
        switch self {
        case .submitted(let job, let submission, let expected):
            writer.member("kind", "submitted")
            writer.member("job", job)
            writer.member("outcome", submission.rawValue)
            writer.member("expected", ifPresent: expected)
        case .cancelled(let job, let reply):
            writer.member("kind", "cancelled")
            writer.member("job", job)
            writer.member("reply", reply)
        case .viewed(let view): view.write(to: &writer)
        case .final(let final): final.write(to: &writer)
        case .done(let job, let state):
            writer.member("kind", "done")
            writer.member("job", job)
            writer.member("state", state)
        case .queue(let name, let messages):
            writer.member("kind", "queue")
            writer.member("name", name)
            writer.member("messages", messages)
        case .fault(let text):
            writer.member("kind", "fault")
            writer.member("text", text)
        case .note(let text):
            writer.member("kind", "note")
            writer.member("text", text)
        }
        writer.endObject()
        return writer.text
    }

    /// Reads a line; `nil` for one that is no entry.
    package init?(json: String) {
        // Foundation's reader: a long run has hundreds of megabytes, and tests are built without optimisation.
        guard let line = try? JSONDecoder().decode(Line.self, from: Data(json.utf8)) else { return nil }
        let job = line.job ?? ""
        switch line.kind {
        case "submitted":
            guard let outcome = line.outcome.flatMap(Submission.init(rawValue:)) else { return nil }
            self = .submitted(job: job, outcome, expected: line.expected)
        case "cancelled": self = .cancelled(job: job, reply: line.reply ?? "")
        case "viewed":
            guard let end = line.end.flatMap(ViewEnd.init(rawValue:)), let from = line.from.flatMap({ EventID($0) })
            else { return nil }
            self = .viewed(
                View(watcher: line.watcher ?? "", job: job, from: from, events: line.events ?? [], end: end))
        case "final":
            self = .final(
                Final(
                    job: job, state: line.state ?? "", attempt: line.attempt ?? 0, result: line.result,
                    log: line.log ?? []))
        case "done": self = .done(job: job, state: line.state ?? "")
        case "queue": self = .queue(name: line.name ?? "", messages: line.messages ?? 0)
        case "fault": self = .fault(line.text ?? "")
        case "note": self = .note(line.text ?? "")
        default: return nil
        }
    }

    /// All members that a line may have.
    private struct Line: Decodable {
        var kind: String
        var job, outcome, expected, reply, watcher, from, end, state, result, name, text: String?
        var attempt, messages: Int?
        var events: [String?]?
        var log: [String]?
    }
}

extension HistoryEntry.View {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.member("kind", "viewed")
        writer.member("job", job)
        writer.member("watcher", watcher)
        writer.member("from", from.description)
        writer.member("end", end.rawValue)
        writer.key("events")
        writer.beginArray()
        for event in events { writer.value(event.map(JSONValue.string) ?? .null) }
        writer.endArray()
    }
}

extension HistoryEntry.Final {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.member("kind", "final")
        writer.member("job", job)
        writer.member("state", state)
        writer.member("attempt", attempt)
        writer.member("result", ifPresent: result)
        writer.key("log")
        writer.beginArray()
        for line in log { writer.value(line) }
        writer.endArray()
    }
}
