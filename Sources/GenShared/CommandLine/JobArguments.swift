/// Makes a job of a command line's arguments; the same rules for every command that takes one.
package enum JobArguments {
    /// The options that `job` reads.
    package static let options: [CommandSpecification.Option] = [
        .init("style", "STYLE", "how the result should sound (rewrite, reply)"),
        .init("option", "NAME=VALUE", "a generation option, such as temperature=0.2", isRepeatable: true),
    ]

    /// - Throws: `UsageError` for values that no job can have.
    package static func job(
        _ arguments: Arguments, kind kindText: String, text: String, id: JobID? = nil, limits: JobLimits = JobLimits()
    ) throws(UsageError) -> Job {
        guard let kind = JobKind(rawValue: kindText) else {
            let known = JobKind.allCases.map(\.rawValue).joined(separator: ", ")
            throw UsageError("\"\(kindText.prefix(30))\" is no kind of job; known are \(known)")
        }
        var input = JobInput(text: text)
        input.style = arguments.value("style")
        if kind == .image { input.image = ImageParameters() }
        let now = Timestamp.now
        var job = Job(id: id ?? JobID(atMilliseconds: now.milliseconds), kind: kind, input: input)
        job.createdAt = now
        job.options = try generationOptions(arguments.all("option"), limits)
        do throws(JobRejection) { _ = try Job(body: job.body, limits: limits) } catch {
            throw UsageError(error.field == "input.text" ? "the text \(error.reason)" : "\(error)")
        }
        return job
    }

    private static func generationOptions(
        _ pairs: [String], _ limits: JobLimits
    ) throws(UsageError) -> GenerationOptions {
        var object = JSONObject()
        for pair in pairs {
            let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            guard parts.count == 2, !parts[0].isEmpty else {
                throw UsageError("--option: \"\(pair.prefix(40))\" is not NAME=VALUE")
            }
            let name = String(parts[0])
            guard names.contains(name) else {
                throw UsageError(
                    "--option: \"\(name.prefix(40))\" is unknown; known are \(names.joined(separator: ", "))")
            }
            object[name] = value(String(parts[1]), of: name, before: object[name])
        }
        do throws(JobRejection) {
            return try GenerationOptions(fields: JSONFields(object), limits: limits)
        } catch { throw UsageError("--option \(error)") }
    }

    private static let names = [
        "temperature", "top_p", "min_p", "repeat_penalty", "max_tokens", "seed", "stop", "model", "thinking",
    ]

    private static func value(_ text: String, of name: String, before: JSONValue?) -> JSONValue {
        switch name {
        case "model": return .string(text)
        case "stop": return .array((before?.array ?? []) + [.string(text)])
        default:
            // Numbers and booleans as JSON has them; anything else stays text and is refused by its type.
            return (try? JSONParser.parse(text)) ?? .string(text)
        }
    }
}
