import Testing

@testable import GenShared

/// Bodies of messages for the tests of decoding.
enum MessageBody {
    /// The four members that a message must have.
    static let least = #"{"v":1,"id":"job-1","kind":"slogan","input":{"text":"coffee shop"}}"#

    /// A message that uses every member of the contract.
    static let full = """
        {"v":1,"id":"01j9z3k5m7n8p9q0r1s2t3v4w5","kind":"reply","input":{"text":"Where is my parcel?","style":"kind",\
        "messages":[{"role":"system","content":"Be short."},{"role":"user","content":"Hi \\ud83d\\ude00"},\
        {"role":"assistant","content":"Hello"}],"schema":{"type":"object","properties":{"a":{"type":"string"}}}},\
        "options":{"temperature":0.7,"top_p":0.9,"min_p":0.05,"repeat_penalty":1.1,"max_tokens":64,"seed":4294967295,\
        "stop":["\\n","END"],"model":"qwen2.5:7b","thinking":false},"lane":"batch","pool":"text-large",\
        "created_at":"2026-11-30T12:00:00.000Z","expires_at":"2026-12-01T12:00:00.500Z","timeout_s":1200,\
        "tenant":"acme","metadata":{"order":17,"tags":["a","b"],"nested":{"x":null}}}
        """

    /// The least message with one member changed; `nil` takes it away.
    /// - Parameters:
    ///   - path: its name, or that of an object and of its member: `options.seed`.
    ///   - json: its new value.
    static func with(_ path: String, _ json: String?, kind: JobKind = .slogan) throws -> [UInt8] {
        var body = try #require(try JSONParser.parse(least).object)
        body["kind"] = .string(kind.rawValue)
        let value = try json.map { try JSONParser.parse($0, options: .lenient) }
        let parts = path.split(separator: ".").map(String.init)
        if parts.count == 2 {
            var inner = body[parts[0]]?.object ?? JSONObject()
            inner[parts[1]] = value
            body[parts[0]] = .object(inner)
        } else {
            body[path] = value
        }
        return Array(JSONValue.object(body).serialized.utf8)
    }
}

/// The rejection that this body meets; `nil` where it is a job.
func rejection(
    _ body: [UInt8], limits: JobLimits = JobLimits(), route: (pool: String, lane: Lane)? = nil
) -> JobRejection? {
    do throws(JobRejection) {
        _ = try Job(body: body, limits: limits, route: route)
        return nil
    } catch { return error }
}

/// The rejection that this body meets; `nil` where it is a job.
func rejection(_ body: String, limits: JobLimits = JobLimits()) -> JobRejection? {
    rejection(Array(body.utf8), limits: limits)
}
