import Foundation
import GenShared
import GenTestSupport
import Testing

/// Programs in surroundings that nobody would choose: closed descriptors, no locale, terminals, absurd arguments.
@Suite("Bad surroundings", .timeLimit(.minutes(3)))
struct BadSurroundingsTests {
    /// A shell line in which `$0` is the dispatcher.
    private func shell(
        _ line: String, _ arguments: [String] = [], environment change: [String: String?] = [:], input: String? = nil
    ) async throws -> (status: Int32, output: String, errors: String) {
        var environment = try TestEnvironment.programEnvironment()
        for (name, value) in change { environment[name] = value }
        return try await run(
            "/bin/sh", ["-c", line, TestEnvironment.program("gendispatcher")] + arguments, environment: environment,
            input: input, within: .seconds(30))
    }

    @Test("B31: without locale, home, writable folder, standard input and standard error a job still runs")
    func bareSurroundings() async throws {
        try await withWorker { worker in
            for line in [
                #"LANG=C LC_ALL=C exec "$0" "$@""#, #"unset HOME XDG_CONFIG_HOME USER; exec "$0" "$@""#,
                #"cd /proc; exec "$0" "$@""#,
                #"exec "$0" "$@" 2>&-"#, #"exec "$0" "$@" <&-"#, #"exec "$0" "$@" <&- 2>&-"#,
            ] {
                let shown = try await shell(line, ["submit", "reply", "Grüße 🚋", "--wait", "--pool", worker.pool])
                #expect(shown.status == 0 && shown.output.contains("Grüße 🚋"), "\(line): \(shown)")
            }
            let lost = try await shell(#"exec "$0" "$@" >&-"#, ["submit", "reply", "x", "--pool", worker.pool])
            #expect(lost.status == 0)
            let full = try await shell(#"exec "$0" "$@" >/dev/full"#, ["submit", "reply", "x", "--pool", worker.pool])
            #expect(full.status == 0)
        }
    }

    @Test("B20: no text and standard input closed, empty, a folder or a terminal: asked for in one line, exit 2")
    func noInput() async throws {
        for (line, part) in [
            (#"exec "$0" submit reply - <&-"#, "empty"), (#"exec "$0" submit reply - </dev/null"#, "empty"),
            (#"exec "$0" submit reply </dev/null"#, "empty"), (#"exec "$0" submit reply - </"#, "cannot be read"),
            (#"exec "$0" submit reply - </dev/zero"#, "has more than"),
            (#"printf 'a\377b' | "$0" submit reply -"#, "byte 1 "), (#"printf 'a\000b' | "$0" submit reply -"#, "NUL"),
            (#"printf '\357\273\277  \r\n' | "$0" submit reply -"#, "empty"),
        ] {
            let refused = try await shell(line)
            #expect(refused.status == 2 && refused.output == "" && refused.errors.contains(part), "\(line): \(refused)")
        }
        // `script` gives it a terminal, and answers with its exit status.
        let asked = try await shell(#"script -qec "$0 submit reply" /dev/null </dev/null"#)
        #expect(asked.status == 2 && asked.output.contains("which text?"), "\(asked)")
    }

    @Test("B19: a text that begins with a dash stands behind --, one with an at sign is text")
    func dashes() async throws {
        try await withWorker { worker in
            for text in ["-x", "--help", "@/etc/passwd"] {
                let shown = try await dispatcher("submit", "reply", "--wait", "--pool", worker.pool, "--", text)
                #expect(shown.status == 0 && shown.output.contains(text))
            }
        }
        #expect(try await dispatcher("submit", "reply", "-x").status == 2)
        for path in ["/dev/zero", "/", "/nowhere/m.json", "/dev/null"] {
            let refused = try await dispatcher("submit", "reply", "x", "--messages", path)
            #expect(refused.status == 2 && refused.errors.contains("--messages: \(path)"), "\(refused.errors)")
        }
    }

    @Test("B19: a text that is not UTF-8 is refused by both programs, not rewritten")
    func otherEncoding() async throws {
        let refused = try await shell(#"exec "$0" submit reply "$(printf 'Gr\374\337e')""#)
        #expect(refused.status == 2 && refused.errors.contains("argument 3 is not UTF-8") && refused.output == "")
        let worker = try TestEnvironment.program("genworker")
        let tried = try await shell(#"exec "$1" try reply "$(printf '\377')""#, [worker])
        #expect(tried.status == 2 && tried.errors.contains("argument 3 is not UTF-8"))
    }

    @Test("B30: ten thousand arguments, and one of 100 KB, are refused in a short line")
    func manyArguments() async throws {
        for arguments in [
            Array(repeating: "x", count: 10_000), [String(repeating: "y", count: 100_000)],
            ["submit", "reply"] + Array(repeating: "x", count: 10_000),
            ["submit", "reply", String(repeating: "y", count: 100_000)],
            ["submit", "--\(String(repeating: "z", count: 100_000))"],
            ["submit", "reply", "x"] + Array(repeating: "--option=stop=x", count: 10_000),
        ] {
            let refused = try await shell(#"exec "$0" "$@""#, arguments)
            #expect(refused.status == 2 && refused.output == "" && refused.errors.utf8.count < 500, "\(refused.errors)")
        }
    }

    @Test("B46: hostile output is stored and piped byte for byte, and shown without what a terminal obeys")
    func hostileOutput() async throws {
        let hostile =
            "a\u{1B}]52;c;eA==\u{7}b\u{1B}[2Jc\u{9B}31md\u{202E}e\r\tf" + String(repeating: "g", count: 60_000)
        try await withWorker(backend: #"type: "echo", chunk_size: 500"#) { worker in
            let submitted = try await dispatcher("submit", "reply", "-", "--pool", worker.pool, input: hostile)
            try #require(submitted.status == 0)
            let id = String(submitted.output.dropLast())
            let piped = try await dispatcher("watch", id)
            // The echo says the whole prompt, which ends with the text.
            #expect(piped.status == 0 && Array(piped.output.utf8).firstRange(of: Array(hostile.utf8)) != nil)
            let stored = try await run(
                "/usr/bin/redis-cli",
                ["-u", TestEnvironment.value("GEN_TEST_REDIS_URL"), "HGET", "gen:{\(id)}:job", "result"],
                environment: [:])
            #expect(stored.output.utf8.elementsEqual(piped.output.utf8))
            for command in ["watch", "result"] {
                let shown = try await shell(#"script -qec "$0 \#(command) \#(id)" /dev/null </dev/null"#)
                // The terminal itself puts a CR before each LF.
                let text = shown.output.replacing("\r\n", with: "\n")
                for scalar in text.unicodeScalars where scalar.properties.generalCategory == .control {
                    #expect(scalar == "\n" || scalar == "\t", "\(scalar.value)")
                }
                #expect(shown.status == 0 && text.contains("a]52;c;eA==b[2Jc31mde\tfggg") && !text.contains("\u{202E}"))
            }
        }
    }

    @Test("B26, B27: a password file or a configuration that anybody may write stops both programs with exit 2")
    func fileModes() async throws {
        let path = "\(NSTemporaryDirectory())/gen-\(UUID().uuidString)"
        defer { unlink(path) }
        for (text, arguments, variable) in [
            ("amqp://u:hunter2@127.0.0.1:1", ["status", "x"], "GEN_AMQP_URL_FILE"),
            ("{}", ["status", "x"], "GEN_CONFIG"),
        ] {
            try Data(text.utf8).write(to: URL(filePath: path))
            chmod(path, 0o666)
            let refused = try await shell(
                #"exec "$0" "$@""#, arguments, environment: [variable: path, "GEN_AMQP_URL": nil])
            #expect(
                refused.status == 2 && refused.errors.contains("chmod o-w \(path)")
                    && !refused.errors.contains("hunter2"))
        }
        let worker = try await run(
            TestEnvironment.program("genworker"), ["run", "--config", path],
            environment: TestEnvironment.programEnvironment(), within: .seconds(30))
        #expect(worker.status == 2 && worker.errors.contains("chmod o-w \(path)"))
        // Readable by all: told, and used.
        try Data(try TestEnvironment.value("GEN_TEST_REDIS_URL").utf8).write(to: URL(filePath: path))
        chmod(path, 0o644)
        let told = try await shell(
            #"exec "$0" "$@""#, ["status", TestEnvironment.uniqueName("none")],
            environment: ["GEN_REDIS_URL": nil, "GEN_REDIS_URL_FILE": path])
        #expect(told.status == 4 && told.errors.contains("warning: GEN_REDIS_URL_FILE: \(path) may be read by anybody"))
    }
}
