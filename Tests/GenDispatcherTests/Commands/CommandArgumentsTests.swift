import GenShared
import Testing

@testable import GenDispatcher

/// What each command refuses before it talks to any server.
@Suite("Command arguments")
struct CommandArgumentsTests {
    private func make(_ words: [String]) throws -> any DispatcherCommand {
        guard case .command(let type, let arguments) = CommandTable(commands: GenDispatcher.commands).match(words)
        else {
            throw UsageError("no command")
        }
        return try type.init(Arguments(arguments, type.specification), limits: JobLimits())
    }

    @Test(
        "sensible lines are taken",
        arguments: [
            "setup", "setup --pool a --pool b", "submit slogan coffee", "submit slogan coffee --stream --json",
            "submit reply hi --wait --lane batch --pool large --tenant t --expires-in 30s --timeout 20m",
            "submit image cat --id my-job_1 --option seed=1 --deadline 1s --wait-for 10m --cancel-on-interrupt --stream",
            "watch my-job", "watch my-job --from 1-5 --json --wait-for-job 30s", "status my-job --json",
            "result my-job",
            "cancel a b c --wait", "doctor --pool text", "doctor --fix", "doctor --resend --dry-run",
            "submit slogan a --idempotency-key k --unique-key u --replace", "dead list --reason x --limit 3 --json",
            "dead show sha256:0123456789ab", "dead replay a b --dry-run", "dead replay --all --deadline 1s",
            "dead drop --reason malformed", "dead drop --all --yes",
        ])
    func taken(_ line: String) { #expect(throws: Never.self) { try make(line.split(separator: " ").map(String.init)) } }

    @Test(
        "B18, B21: others are refused",
        arguments: [
            "setup --pool a.b", "setup --pool \(String(repeating: "x", count: 33))", "setup extra", "submit",
            "submit poem text", "submit slogan a b", "submit slogan a --stream --wait", "submit slogan a --json",
            "submit slogan a --lane fast", "submit slogan a --pool a.b", "submit slogan a --id a/b",
            "submit slogan a --timeout 0", "submit slogan a --timeout 21m", "submit slogan a --expires-in -1",
            "submit slogan a --deadline soon", "submit slogan a --option x=1", "submit slogan a --messages /nowhere/m",
            "watch", "watch a/b", "watch a --from 5", "watch a --from 1-x", "watch a --wait-for 1e99", "status",
            "status a b",
            "status a.b", "result *", "cancel", "cancel ok not/ok", "doctor --pool ..",
            "doctor --dry-run", "doctor --fix --resend", "doctor --resend --pool text", "submit slogan a --replace",
            "submit slogan a --unique-key=", "submit slogan a --idempotency-key \(String(repeating: "k", count: 257))",
            "dead list --limit 0", "dead list extra", "dead show", "dead show a b", "dead replay", "dead drop",
            "dead drop a --all", "dead replay a/b",
        ])
    func refused(_ line: String) {
        #expect(throws: UsageError.self) { try make(line.split(separator: " ").map(String.init)) }
    }

    @Test("an empty tenant or text is refused")
    func empty() {
        #expect(throws: UsageError.self) { try make(["submit", "slogan", "  "]) }
        #expect(throws: UsageError.self) { try make(["submit", "slogan", "a", "--tenant="]) }
    }

    @Test("every command explains itself with examples and exit codes, and no two share a name")
    func help() {
        let specifications = GenDispatcher.commands.map { $0.specification }
        #expect(Set(specifications.map(\.name)).count == specifications.count)
        for specification in specifications {
            let help = specification.help(program: "gendispatcher")
            #expect(help.contains("Examples:") && help.contains("Exit codes:") && help.contains("--config FILE"))
        }
    }

    @Test("an end's exit code is that of its state")
    func exitCodes() {
        let wanted: [JobState: ExitCode] = [
            .queued: .stillRunning, .running: .stillRunning, .retrying: .stillRunning, .completed: .done,
            .failed: .failed, .cancelled: .cancelled, .expired: .expired,
        ]
        for state in JobState.allCases { #expect(state.exitCode == wanted[state]) }
    }
}
