import GenShared

/// The calls to a llama-server beside generating: health, properties, slots.
struct LlamaServerClient: Sendable {
    enum Health: Equatable {
        case ready
        case loading
        case away(String)
    }

    let name: String
    let baseURL: String
    let key: Secret?
    let http: HTTPClient

    func request(_ method: HTTPRequest.Method, _ path: String, body: [UInt8]? = nil) -> HTTPRequest {
        var request = HTTPRequest(method, baseURL + path, body: body)
        request.headers.append((name: "Content-Type", value: "application/json"))
        if let key { request.headers.append((name: "Authorization", value: "Bearer \(key.reveal())")) }
        return request
    }

    /// Whether the model is loaded.
    /// - Throws: `CancellationError`.
    func health() async throws -> Health {
        var request = request(.get, "/health")
        request.totalTimeout = .seconds(5)
        do {
            let answer = try await http.fetch(request, limit: 65_536)
            switch answer.status {
            case 200: return .ready
            case 503: return .loading
            default: return .away("its health answers status \(answer.status)")
            }
        } catch let error as HTTPError { return .away(error.message) }
    }

    /// The server's slots and the context of each.
    /// - Throws: `JobFailure`; `CancellationError`.
    func properties() async throws -> (slots: Int, context: Int, model: String?) {
        let value = try await get("/props")
        let path = value["model_alias"]?.string ?? value["model_path"]?.string
        return (
            slots: Int(clamping: value["total_slots"]?.integer ?? 1),
            context: Int(clamping: value["default_generation_settings"]?["n_ctx"]?.integer ?? 0),
            model: path.flatMap { $0.split(separator: "/").last.map(String.init) }
        )
    }

    /// How many slots are at work; `nil` where the server does not tell.
    /// - Throws: `CancellationError`.
    func busySlots() async throws -> Int? {
        do {
            return try await get("/slots").array?.count { $0["is_processing"]?.bool ?? false }
        } catch is JobFailure { return nil }
    }

    /// The failure for an answer with another status than 200.
    func failure(status: Int, body: [UInt8]) -> JobFailure {
        var failure = ChatError.failure(status: status, body: body, backend: name)
        // Some servers repeat the key that they refuse.
        if let key = key?.reveal(), !key.isEmpty { failure.message = failure.message.replacing(key, with: "***") }
        return failure
    }

    private func get(_ path: String) async throws -> JSONValue {
        var request = request(.get, path)
        request.totalTimeout = .seconds(5)
        let answer: (status: Int, body: [UInt8])
        do { answer = try await http.fetch(request) } catch let error as HTTPError {
            throw JobFailure(
                .unavailable, "\(name) cannot be reached: \(error.message)", backend: name, isRetryable: true)
        }
        guard answer.status == 200 else {
            throw failure(status: answer.status, body: answer.body)
        }
        do { return try JSONParser.parse(answer.body, options: .lenient) } catch {
            throw JobFailure(.badReply, "\(name)\(path) answers what is \(error)", backend: name, isRetryable: true)
        }
    }
}
