import GenShared

/// `genworker run`: serves pools until it is told to stop.
enum RunCommand {
    static let specification = CommandSpecification(
        "run", summary: "Takes jobs from RabbitMQ, runs them, and streams what comes out to Redis.",
        options: [
            .init("config", "FILE", "JSON5 configuration (else GEN_CONFIG, then the usual places)"),
            .init("check", nil, "read the configuration, say what it means, and end"),
        ],
        examples: [
            "GEN_MODEL=/models/small.gguf genworker run",
            "genworker run --config /etc/gencluster/config.json5",
        ])

    static func run(_ arguments: Arguments, environment: [String: String]) async -> ExitCode {
        let configuration: WorkerConfiguration
        do throws(ConfigurationError) {
            configuration = try WorkerConfiguration.load(file: arguments.value("config"), environment: environment)
        } catch {
            Terminal.writeError("genworker: \(TerminalText.line("\(error)"))")
            return .usage
        }
        for warning in configuration.warnings { Log.warning("configuration", ["detail": .string(warning)]) }
        if arguments.has("check") {
            for pool in configuration.pools {
                let kinds = pool.kinds.map(\.rawValue).joined(separator: ", ")
                Terminal.write(
                    "pool \(pool.name): \(kinds); \(pool.slots) slots on \(pool.backends.joined(separator: ", "))\n")
            }
            return .done
        }
        return await WorkerService(configuration: configuration).run()
    }
}
