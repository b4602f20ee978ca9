import GenShared

/// `genworker doctor`: asks each backend whether it answers.
enum DoctorCommand {
    static let specification = CommandSpecification(
        "doctor", summary: "Starts each backend of the configuration and asks it for one token. Needs no other server.",
        options: [.init("config", "FILE", "JSON5 configuration (else GEN_CONFIG, then the usual places)")],
        examples: ["genworker doctor --config /etc/gencluster/config.json5"])

    static func run(_ arguments: Arguments, environment: [String: String]) async -> ExitCode {
        let configuration: WorkerConfiguration
        do throws(ConfigurationError) {
            configuration = try WorkerConfiguration.load(file: arguments.value("config"), environment: environment)
        } catch {
            Terminal.writeError("genworker: \(TerminalText.line("\(error)"))")
            return .usage
        }
        for warning in configuration.warnings { Terminal.writeError("genworker: warning: \(warning)") }
        Log.setLevel(.error)
        let http = HTTPClient()
        var isHealthy = true
        for (name, settings) in configuration.backends {
            do {
                let backend = try BackendFactory.make(name, settings, http: http)
                let loading = LoadingLine()
                do {
                    try await backend.start { _ in loading.show(name) }
                    loading.end()
                    Terminal.write("ok    \(name): \(TerminalText.line(try await backend.probe()))\n")
                    await backend.stop()
                } catch {
                    loading.end()
                    await backend.stop()
                    throw error
                }
            } catch {
                isHealthy = false
                Terminal.write("FAIL  \(TerminalText.line("\(error)"))\n")
            }
        }
        return isHealthy ? .done : .failed
    }
}
