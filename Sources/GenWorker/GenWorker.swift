import GenShared
import Glibc

/// The `genworker` program.
@main
struct GenWorker {
    static func main() async {
        ProcessSetup.run()
        let words: [String]
        do { words = try ProgramWords.read() } catch { exit(usage(error.description).rawValue) }
        var environment: [String: String] = [:]
        for name in Self.variables { environment[name] = getenv(name).map { String(cString: $0) } }
        exit(await run(words, environment: environment).rawValue)
    }

    /// The variables that the program reads.
    private static let variables = [
        "GEN_AMQP_URL", "GEN_AMQP_URL_FILE", "GEN_REDIS_URL", "GEN_REDIS_URL_FILE", "GEN_CONFIG", "GEN_MODEL",
        "GEN_LLAMA_SERVER", "GEN_LOG_LEVEL", "HOME", "XDG_CONFIG_HOME",
    ]

    static func run(_ words: [String], environment: [String: String]) async -> ExitCode {
        if let text = environment["GEN_LOG_LEVEL"] {
            guard let level = Log.Level(rawValue: text) else {
                return usage("GEN_LOG_LEVEL must be debug, info, warning or error")
            }
            Log.setLevel(level)
        }
        let commands = [RunCommand.specification, TryCommand.specification, DoctorCommand.specification]
        switch words.first {
        case "--version":
            Terminal.write("genworker \(GenVersion.current)\n")
            return .done
        case "--help", "-h", "help":
            Terminal.write(help(commands))
            return .done
        case nil: return usage("which command? run, try or doctor")
        default: break
        }
        guard let command = commands.first(where: { $0.name == words[0] }) else {
            return usage("unknown command \"\(words[0].prefix(30))\"; known are run, try, doctor")
        }
        do throws(UsageError) {
            let arguments = try Arguments(Array(words.dropFirst()), command)
            guard !arguments.wantsHelp else {
                Terminal.write(command.help(program: "genworker") + "\n")
                return .done
            }
            switch command.name {
            case "run": return await RunCommand.run(arguments, environment: environment)
            case "try": return await TryCommand.run(arguments, environment: environment)
            default: return await DoctorCommand.run(arguments, environment: environment)
            }
        } catch { return usage(error.description) }
    }

    private static func usage(_ message: String) -> ExitCode {
        Terminal.writeError("genworker: \(TerminalText.line(message))\nRun `genworker --help` to see how it is used.")
        return .usage
    }

    private static func help(_ commands: [CommandSpecification]) -> String {
        let lines = commands.map { "  \($0.usage(program: "genworker"))\n      \($0.summary)" }
        return """
            genworker runs generation jobs: it takes them from RabbitMQ, has them made by a local model or an API, and
            streams what comes out to Redis.

            \(lines.joined(separator: "\n"))
              genworker --version

            `genworker COMMAND --help` tells more. Configuration: flags over environment (GEN_AMQP_URL, GEN_REDIS_URL,
            GEN_CONFIG, GEN_MODEL, GEN_LOG_LEVEL) over the file over defaults.

            \(ExitCode.help)

            """
    }
}
