import GenShared

/// Makes backends from their settings: the one place that knows every type.
enum BackendFactory {
    /// - Throws: `JobFailure`.
    static func make(
        _ name: String, _ backend: WorkerConfiguration.Backend, http: HTTPClient
    ) throws(JobFailure) -> any GenerationBackend {
        switch backend {
        case .echo(let settings): EchoBackend(name: name, settings: settings)
        case .llamaServer(let place): try LlamaServerBackend(name: name, place: place, http: http)
        }
    }
}
