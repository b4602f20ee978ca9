import Foundation

/// A program under test: what it prints, and its end.
///
/// Spawned and read by hand, on a thread of its own: the toolchain's `Process` and `FileHandle` crash now and then in
/// Dispatch when many programs come and go at once.
package final class RunningProgram: Sendable {
    /// Thrown where a program did not do in time what the test waits for, or could not be started.
    package struct TooLate: Error, CustomStringConvertible {
        package let description: String
    }

    private let name: String
    package let processID: Int32
    private let record: ProgramRecord

    /// Starts a program.
    /// - Parameter input: what it reads on standard input; nothing where it is `nil`.
    package init(_ path: String, _ arguments: [String], environment: [String: String], input: String? = nil) throws {
        name = URL(filePath: path).lastPathComponent
        let outputs = try Self.makePipe()
        let errors = try Self.makePipe()
        // A file rather than a pipe: a pipe's end that another child inherits would keep it open.
        let source = try Self.inputFile(input)
        defer { for descriptor in [outputs.write, errors.write, source] { close(descriptor) } }
        let record = ProgramRecord()
        self.record = record
        // The thread that follows the program also spawns it: the kernel ends the program when that thread ends, so
        // that a test run which crashes leaves nothing behind.
        let words = ["/usr/bin/setpriv", "--pdeathsig", "KILL", "--", path] + arguments
        let variables = environment.map { "\($0)=\($1)" }
        Thread.detachNewThread {
            record.spawned(Self.spawn(words, variables, [source, outputs.write, errors.write]))
            record.follow(outputs.read, errors.read)
        }
        processID = try record.waitForSpawn(of: path)
    }

    private static func makePipe() throws -> (read: Int32, write: Int32) {
        var ends: [Int32] = [-1, -1]
        guard pipe(&ends) == 0 else { throw TooLate(description: "no pipe") }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        return (ends[0], ends[1])
    }

    private static func inputFile(_ input: String?) throws -> Int32 {
        guard let input else { return open("/dev/null", O_RDONLY | O_CLOEXEC) }
        let file = FileManager.default.temporaryDirectory.appending(path: "gen-input-\(UUID().uuidString)")
        try Data(input.utf8).write(to: file)
        defer { unlink(file.path) }
        return open(file.path, O_RDONLY | O_CLOEXEC)
    }

    private static func spawn(_ words: [String], _ variables: [String], _ descriptors: [Int32]) -> Result<
        pid_t, any Error
    > {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, descriptor) in descriptors.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(number))
        }
        // libcurl's sockets are inherited, and a program that has one keeps it open for its peer. One that is not open
        // is no error; Swift's Glibc leaves out the call that closes all from a number on.
        for descriptor in Int32(descriptors.count)..<1024 {
            posix_spawn_file_actions_addclose(&actions, descriptor)
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // As from a shell: no signal is ignored or blocked.
        var signals = sigset_t()
        sigfillset(&signals)
        posix_spawnattr_setsigdefault(&attributes, &signals)
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK))
        let argv = words.map { strdup($0) } + [nil]
        let envp = variables.map { strdup($0) } + [nil]
        defer { for pointer in argv + envp { free(pointer) } }
        var process: pid_t = 0
        let result = posix_spawn(&process, words[0], &actions, &attributes, argv, envp)
        guard result == 0 else {
            return .failure(TooLate(description: "\(words[0]): \(String(cString: strerror(result)))"))
        }
        return .success(process)
    }

    package var output: String { record.output }
    package var errors: String { record.errors }

    /// Sends a signal, if it still runs.
    package func signal(_ number: Int32) { record.signal(number) }

    /// Waits until standard output or standard error contains the text.
    package func waitFor(_ text: String, within limit: Duration = .seconds(30)) async throws {
        let found = await record.wait(within: limit) { record in
            record.output.contains(text) || record.errors.contains(text) ? true : record.status != nil ? false : nil
        }
        guard found != true else { return }
        let what = found == nil ? "did not say \"\(text)\" within \(limit)" : "ended before it said \"\(text)\""
        throw TooLate(description: "\(name) \(what): \(errors.suffix(2000))")
    }

    /// Waits for its end and everything that it printed.
    /// - Returns: its exit status; 128 and the signal's number where a signal ended it.
    @discardableResult
    package func end(within limit: Duration = .seconds(60)) async throws -> Int32 {
        _ = await record.wait(within: limit) { $0.status != nil ? true : nil }
        guard let status = record.status else {
            throw TooLate(description: "\(name) did not end within \(limit): \(errors.suffix(2000))")
        }
        return status
    }
}

/// Runs a program to its end.
package func run(
    _ path: String, _ arguments: [String], environment: [String: String], input: String? = nil,
    within limit: Duration = .seconds(60)
) async throws -> (status: Int32, output: String, errors: String) {
    let program = try RunningProgram(path, arguments, environment: environment, input: input)
    let status = try await program.end(within: limit)
    return (status, program.output, program.errors)
}

/// Runs `gendispatcher` against the test's servers.
package func dispatcher(
    _ arguments: String..., input: String? = nil, within limit: Duration = .seconds(60)
) async throws -> (status: Int32, output: String, errors: String) {
    try await run(
        TestEnvironment.program("gendispatcher"), arguments, environment: TestEnvironment.programEnvironment(),
        input: input, within: limit)
}

extension RunningProgram {
    /// Asks a program again and again until it gives the answer that the test waits for.
    @discardableResult
    package static func until<Answer>(
        within limit: Duration, _ ask: () async throws -> Answer?
    ) async throws -> Answer {
        let end = ContinuousClock.now + limit
        while ContinuousClock.now < end {
            if let answer = try await ask() { return answer }
        }
        throw TooLate(description: "not the answer that was waited for, within \(limit)")
    }
}
