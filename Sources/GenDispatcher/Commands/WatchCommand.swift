import GenShared

/// `gendispatcher watch`: shows a job's text, from any point on, to its end.
struct WatchCommand: DispatcherCommand {
    static let specification = CommandSpecification(
        "watch", arguments: "ID", argumentCount: 1...1,
        summary: "Shows a job from its start, or from an event on, to its end; also when it has ended already.",
        options: [
            .init("from", "EVENT", "the last event that was seen, such as 1-5: show what follows it"),
            .init("json", nil, "print events as JSON, one a line"),
            .init("wait-for-job", "TIME", "wait this long for a job that does not exist yet"),
            .init("wait-for", "TIME", "how long to watch (default: without end)"), .config,
        ],
        examples: [
            "gendispatcher watch 01jd3k8xk2v0q6m9t4c7w5y1za",
            "gendispatcher watch 01jd3k8xk2v0q6m9t4c7w5y1za --from 1-5 --json",
        ])

    private let id: JobID
    private let start: EventID
    private let style: WatchStyle
    private let waitForJob: Duration
    private let limit: Duration?

    init(_ arguments: Arguments, limits: JobLimits = JobLimits()) throws {
        id = try arguments.jobID()
        style = arguments.has("json") ? .json : .text
        waitForJob = try arguments.duration("wait-for-job") ?? .zero
        limit = try arguments.duration("wait-for")
        guard let text = arguments.value("from") else {
            start = .origin
            return
        }
        guard let event = EventID(text) else { throw UsageError("--from: an event's id looks like 1-5") }
        start = event
    }

    func run(_ context: CommandContext) async throws -> ExitCode {
        let client = context.makeClient()
        // A watch waits for a Redis that goes away, but one that is not there at all is an error to tell at once.
        _ = try await client.record(id)
        var session = WatchSession(client: client, id: id, style: style)
        session.start = start
        session.waitForJob = waitForJob
        session.limit = limit
        return try await session.run()
    }
}
