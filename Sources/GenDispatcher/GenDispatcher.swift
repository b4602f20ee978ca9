import GenShared
import Glibc

/// The `gendispatcher` program.
@main
struct GenDispatcher {
    static func main() async {
        ProcessSetup.run()
        let words: [String]
        do { words = try ProgramWords.read() } catch { exit(usage(error.description).rawValue) }
        var environment: [String: String] = [:]
        for name in variables { environment[name] = getenv(name).map { String(cString: $0) } }
        exit(await run(words, environment: environment).rawValue)
    }

    /// The variables that the program reads.
    private static let variables = [
        "GEN_AMQP_URL", "GEN_AMQP_URL_FILE", "GEN_REDIS_URL", "GEN_REDIS_URL_FILE", "GEN_CONFIG", "HOME",
        "XDG_CONFIG_HOME", "USER",
    ]

    static let commands: [any DispatcherCommand.Type] = [
        SetupCommand.self, SubmitCommand.self, WatchCommand.self, StatusCommand.self, ResultCommand.self,
        CancelCommand.self, DeadListCommand.self, DeadShowCommand.self, DeadReplayCommand.self, DeadDropCommand.self,
        DoctorCommand.self,
    ]

    static func run(_ words: [String], environment: [String: String]) async -> ExitCode {
        let table = CommandTable(commands: commands)
        let names = table.firstWords.joined(separator: ", ")
        switch words.first {
        case "--version":
            Terminal.write("gendispatcher \(GenVersion.current)\n")
            return .done
        case "--help", "-h", "help":
            Terminal.write(help)
            return .done
        case nil: return usage("which command? \(names)")
        default: break
        }
        switch table.match(words) {
        case .unknown: return usage("unknown command \"\(words[0].prefix(30))\"; known are \(names)")
        case .group(let name, let commands, let rest): return group(name, commands, rest)
        case .command(let command, let arguments):
            do { return try await perform(command, arguments, environment) } catch {
                if let error = error as? UsageError { return usage(error.description, command.specification) }
                if let error = error as? ConfigurationError { return usage(error.description) }
                return CommandFailure.report(error)
            }
        }
    }

    /// A name that only begins commands: its help, or which of them was meant.
    private static func group(
        _ name: String, _ commands: [any DispatcherCommand.Type], _ rest: [String]
    ) -> ExitCode {
        let names = commands.map { $0.specification.name }.joined(separator: ", ")
        switch rest.first {
        case "--help", "-h", "help":
            let example = "`gendispatcher \(name) COMMAND --help` tells more, with examples."
            Terminal.write("\(CommandTable.lines(commands))\n\n\(example)\n\n\(ExitCode.help)\n")
            return .done
        case nil: return usage("which command? \(names)", named: name)
        case let word?: return usage("unknown command \"\(name) \(word.prefix(30))\"; known are \(names)", named: name)
        }
    }

    private static func perform(
        _ type: any DispatcherCommand.Type, _ words: [String], _ environment: [String: String]
    ) async throws -> ExitCode {
        let arguments = try Arguments(words, type.specification)
        guard !arguments.wantsHelp else {
            Terminal.write(type.specification.help(program: "gendispatcher") + "\n")
            return .done
        }
        let name = arguments.value("config") ?? environment["GEN_CONFIG"]
        let file = try ConfigurationFile.load(named: name, environment: environment)
        let servers = try ServerSettings(environment: environment, file: file)
        for warning in servers.warnings {
            Terminal.writeError("gendispatcher: warning: \(TerminalText.line(warning))")
        }
        let limits = try JobLimits(file: file)
        let command = try type.init(arguments, limits: limits)
        let context = CommandContext(servers: servers, limits: limits, user: environment["USER"])
        return try await command.run(context)
    }

    private static func usage(
        _ message: String, _ command: CommandSpecification? = nil, named name: String? = nil
    ) -> ExitCode {
        let more = (command?.name ?? name).map { "gendispatcher \($0) --help" } ?? "gendispatcher --help"
        Terminal.writeError("gendispatcher: \(TerminalText.line(message))\nRun `\(more)` to see how it is used.")
        return .usage
    }

    private static var help: String {
        return """
            gendispatcher hands generation jobs to a cluster of workers, and shows what they make while they make it.

            \(CommandTable.lines(commands))
              gendispatcher --version

            `gendispatcher COMMAND --help` tells more, with examples. Servers: GEN_AMQP_URL and GEN_REDIS_URL (or …_FILE
            with a file that holds the value), else the configuration file, else this machine.

            \(ExitCode.help)

            """
    }
}
