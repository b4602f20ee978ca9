import Foundation
import Synchronization

/// A program under test: what it prints, and its end.
///
/// Spawned and read by hand, on a thread of its own: the toolchain's `Process` and `FileHandle` crash now and then in
/// Dispatch when many programs come and go at once.
package final class RunningProgram: Sendable {
    /// Thrown where a program did not do in time what the test waits for, or could not be started.
    package struct TooLate: Error, CustomStringConvertible {
        package let description: String
    }

    private struct State {
        var output: [UInt8] = []
        var errors: [UInt8] = []
        var status: Int32?
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let name: String
    package let processID: Int32
    private let state = Mutex(State())

    /// Starts a program.
    /// - Parameter input: what it reads on standard input; nothing where it is `nil`.
    package init(_ path: String, _ arguments: [String], environment: [String: String], input: String? = nil) throws {
        name = URL(filePath: path).lastPathComponent
        let outputs = try Self.makePipe()
        let errors = try Self.makePipe()
        // A file rather than a pipe: a pipe's end that another child inherits would keep it open.
        let source = try Self.inputFile(input)
        defer { for descriptor in [outputs.write, errors.write, source] { close(descriptor) } }
        processID = try Self.spawn(
            [path] + arguments, environment.map { "\($0)=\($1)" }, [source, outputs.write, errors.write])
        Thread.detachNewThread { [self] in follow(outputs.read, errors.read) }
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

    private static func spawn(_ words: [String], _ variables: [String], _ descriptors: [Int32]) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        for (number, descriptor) in descriptors.enumerated() {
            posix_spawn_file_actions_adddup2(&actions, descriptor, Int32(number))
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
        guard result == 0 else { throw TooLate(description: "\(words[0]): \(String(cString: strerror(result)))") }
        return process
    }

    /// Reads until the program has ended.
    ///
    /// Its end does not wait for the pipes': another program may hold them open.
    private func follow(_ output: Int32, _ errors: Int32) {
        defer {
            close(output)
            close(errors)
        }
        while true {
            var entries = [output, errors].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            _ = poll(&entries, 2, 10)
            drain(output, \.output)
            drain(errors, \.errors)
            var status: Int32 = 0
            guard waitpid(processID, &status, WNOHANG) == processID else {
                // A closed pipe of a program that runs on would be readable for ever.
                if entries.contains(where: { $0.revents & Int16(POLLHUP) != 0 }) { usleep(5000) }
                continue
            }
            drain(output, \.output)
            drain(errors, \.errors)
            let signal = status & 0x7F
            change { $0.status = signal == 0 ? (status >> 8) & 0xFF : 128 + signal }
            return
        }
    }

    private func drain(_ descriptor: Int32, _ place: any WritableKeyPath<State, [UInt8]> & Sendable) {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = read(descriptor, &buffer, buffer.count)
            guard count > 0 else { return }
            change { $0[keyPath: place].append(contentsOf: buffer[..<count]) }
        }
    }

    package var output: String { String(decoding: state.withLock { $0.output }, as: UTF8.self) }
    package var errors: String { String(decoding: state.withLock { $0.errors }, as: UTF8.self) }

    /// Sends a signal.
    package func signal(_ number: Int32) {
        // Once it was reaped, its number may be another's.
        state.withLock { if $0.status == nil { _ = Foundation.kill(processID, number) } }
    }

    /// Waits until standard output or standard error contains the text.
    package func waitFor(_ text: String, within limit: Duration = .seconds(30)) async throws {
        try await wait(within: limit, for: "\"\(text)\"") { [self] in
            output.contains(text) || errors.contains(text) ? true : state.withLock { $0.status } != nil ? false : nil
        }
    }

    /// Waits for its end and everything that it printed.
    @discardableResult
    package func end(within limit: Duration = .seconds(60)) async throws -> Int32 {
        try await wait(within: limit, for: "its end") { [self] in
            state.withLock { $0.status != nil } ? true : nil
        }
        return state.withLock { $0.status } ?? -1
    }

    private func wait(within limit: Duration, for what: String, _ isDone: @escaping @Sendable () -> Bool?) async throws
    {
        let timer = Task { [self] in
            try await Task.sleep(for: limit)
            change { _ in }
        }
        defer { timer.cancel() }
        let deadline = ContinuousClock.now + limit
        while true {
            if let result = isDone() {
                guard result else { throw TooLate(description: "\(name) ended before \(what): \(errors.suffix(2000))") }
                return
            }
            guard ContinuousClock.now < deadline else {
                throw TooLate(description: "\(name): \(what) did not come within \(limit): \(errors.suffix(2000))")
            }
            await withCheckedContinuation { continuation in
                // What has changed since `isDone` looked would not wake us: look again under the lock's order.
                state.withLock { $0.waiters.append(continuation) }
                if isDone() != nil || ContinuousClock.now >= deadline { change { _ in } }
            }
        }
    }

    private func change(_ body: (inout State) -> Void) {
        let waiters = state.withLock { state in
            body(&state)
            defer { state.waiters = [] }
            return state.waiters
        }
        for waiter in waiters { waiter.resume() }
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
