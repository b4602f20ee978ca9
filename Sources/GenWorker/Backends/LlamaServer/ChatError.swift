import GenShared

/// Reads the error objects of OpenAI's API and of those who speak like it.
enum ChatError {
    /// The failure that an error object tells of.
    /// - Parameter status: of the answer; `nil` for an error within a stream, which has its own `code` or none.
    static func failure(_ error: JSONValue, status: Int?, backend: String) -> JobFailure {
        let message = oneLine(error["message"]?.string ?? error.string ?? error.serialized)
        let type = error["type"]?.string ?? ""
        let code = error["code"]?.string ?? ""
        if type == "exceed_context_size_error" || code == "context_length_exceeded" {
            let figures = (error["n_prompt_tokens"]?.integer, error["n_ctx"]?.integer)
            if case (let prompt?, let context?) = figures {
                return JobFailure(
                    .contextExceeded,
                    "the prompt has \(prompt) tokens, the model's context at \(backend) has \(context): shorten it",
                    backend: backend)
            }
            return JobFailure(.contextExceeded, "\(backend): \(message)", backend: backend)
        }
        switch status ?? Self.status(in: error) {
        case 401, 403, 407:
            return JobFailure(.unauthorized, "\(backend) refuses our key: \(message)", backend: backend)
        case 429 where code == "insufficient_quota":
            return JobFailure(.credits, "\(backend): \(message)", backend: backend)
        case 429: return JobFailure(.rateLimited, "\(backend): \(message)", backend: backend, isRetryable: true)
        case 503: return JobFailure(.unavailable, "\(backend): \(message)", backend: backend, isRetryable: true)
        case 408, 409, 500...:
            return JobFailure(.backendError, "\(backend): \(message)", backend: backend, isRetryable: true)
        case 300..<400:
            return JobFailure(
                .badReply, "\(backend) points elsewhere, which is not followed: correct its `url` (\(message))",
                backend: backend)
        case ..<300:
            return JobFailure(
                .badReply, "\(backend) sent no stream: \(message)", backend: backend, isRetryable: true)
        default: return JobFailure(.invalidInput, "\(backend): \(message)", backend: backend)
        }
    }

    /// The failure for an answer with an error status and this body.
    static func failure(status: Int, body: [UInt8], backend: String) -> JobFailure {
        // A body that is no JSON, a proxy's page say, is shown as it is, in one line.
        let parsed = try? JSONParser.parse(body, options: .lenient)
        if let error = parsed?["error"], error != .null { return failure(error, status: status, backend: backend) }
        let text = String(decoding: body.prefix(200), as: UTF8.self)
        return failure(.string("status \(status) \(text)"), status: status, backend: backend)
    }

    /// Whether the body of a 503 is llama-server's own, which says it while the model loads; a proxy's page is not.
    static func isLoading(_ body: [UInt8]) -> Bool {
        (try? JSONParser.parse(body, options: .lenient))?["error"]?.object != nil  // No JSON: not llama-server.
    }

    /// A stranger's text for a message: on one line, and cut by scalars, since one character may have any length.
    static func oneLine(_ text: String) -> String {
        let start = String(String.UnicodeScalarView(text.unicodeScalars.prefix(500)))
        return start.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    /// Within a stream nothing but an error status is one: 500 stands for all else.
    private static func status(in error: JSONValue) -> Int {
        let code = error["code"]?.integer ?? error["code"]?.string.flatMap { Int64($0) } ?? 500
        return (400...599).contains(code) ? Int(code) : 500
    }
}
