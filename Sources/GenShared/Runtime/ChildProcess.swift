import CLinux
import Glibc
import Synchronization

/// A program that we started, its last words, and its end.
///
/// It is spawned through `setpriv --pdeathsig KILL`, from a thread that lives as long as this actor: the kernel sends
/// the signal when the spawning *thread* ends, so a child of a pool thread would die when the pool shrinks. So the
/// child is gone with us, even after `kill -9`.
package actor ChildProcess {
    /// Why a program could not be started.
    package struct SpawnError: Error, CustomStringConvertible {
        package let description: String
    }

    /// How a program ended.
    package enum Ending: Sendable, Equatable, CustomStringConvertible {
        case exited(Int32)
        case signalled(Int32)

        package var description: String {
            switch self {
            case .exited(let status): "it exited with status \(status)"
            case .signalled(let signal): "it was ended by signal \(signal)"
            }
        }
    }

    private nonisolated let executor: PinnedExecutor
    private var pid: pid_t = 0
    private var processDescriptor: Int32 = -1
    private var outputDescriptor: Int32 = -1
    private var lines: [String] = []
    private var partial: [UInt8] = []
    private var ending: Ending?
    private var waiters: [CheckedContinuation<Ending, Never>] = []

    private static let keptLines = 50
    private static let lineLimit = 1000

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// - Parameter name: names the thread.
    package init(name: String) {
        executor = PinnedExecutor(name: name)
        executor.poll(self)
    }

    isolated deinit {
        if ending == nil, pid > 0 { kill(pid, SIGKILL) }
        closeDescriptors()
    }

    /// Starts the program.
    /// - Parameters:
    ///   - arguments: the program, looked up on PATH, and its arguments; no shell is involved.
    ///   - environment: added to our own.
    /// - Throws: `SpawnError`.
    package func start(_ arguments: [String], environment: [String: String] = [:]) throws(SpawnError) {
        var ends: [Int32] = [-1, -1]
        guard clinux_pipe(&ends) == 0 else { throw SpawnError(description: "no pipe: \(errorText(errno))") }
        defer { close(ends[1]) }
        let words = ["setpriv", "--pdeathsig", "KILL", "--"] + arguments
        var spawned: pid_t = 0
        let result = Self.spawn(words, Self.variables(adding: environment), output: ends[1], &spawned)
        guard result == 0 else {
            close(ends[0])
            throw SpawnError(description: "\(arguments.first ?? "") cannot be started: \(errorText(result))")
        }
        pid = spawned
        outputDescriptor = ends[0]
        _ = fcntl(outputDescriptor, F_SETFL, O_NONBLOCK)
        processDescriptor = clinux_pidfd_open(pid)
    }

    private static func variables(adding environment: [String: String]) -> [String] {
        var variables: [String] = []
        var entry = environ
        while let pointer = entry.pointee {
            let text = String(cString: pointer)
            if !environment.keys.contains(where: { text.hasPrefix("\($0)=") }) { variables.append(text) }
            entry += 1
        }
        return variables + environment.map { "\($0)=\($1)" }
    }

    private static func spawn(
        _ words: [String], _ variables: [String], output: Int32, _ pid: inout pid_t
    ) -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_adddup2(&actions, output, 1)
        posix_spawn_file_actions_adddup2(&actions, output, 2)
        // curl's sockets are not marked: a child that had one would keep a cancelled request open at its server.
        _ = clinux_close_from(&actions, 3)
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        // A group of its own: Ctrl-C at the terminal is ours to pass on, in the right order. No signal is ignored or
        // blocked: Dispatch blocks those that it watches, and a child that inherits that never hears SIGTERM.
        var defaults = sigset_t()
        sigfillset(&defaults)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        var blocked = sigset_t()
        sigemptyset(&blocked)
        posix_spawnattr_setsigmask(&attributes, &blocked)
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes, Int16(POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP))

        let argv = words.map { strdup($0) } + [nil]
        let envp = variables.map { strdup($0) } + [nil]
        defer { for pointer in argv + envp { free(pointer) } }
        return posix_spawnp(&pid, "setpriv", &actions, &attributes, argv, envp)
    }

    /// The process id; 0 before the start.
    package var processID: Int32 { pid }

    /// What it printed last, oldest line first; at most 50 lines.
    package var lastLines: [String] { lines }

    /// How it ended; `nil` while it runs.
    package var currentEnding: Ending? { ending }

    /// Waits for its end.
    package func end() async -> Ending {
        if let ending { return ending }
        return await withCheckedContinuation { waiters.append($0) }
    }

    /// Sends a signal, if it still runs.
    package func signal(_ number: Int32) {
        if ending == nil, pid > 0 { kill(pid, number) }
    }

    private func closeDescriptors() {
        for descriptor in [processDescriptor, outputDescriptor] where descriptor >= 0 { close(descriptor) }
        processDescriptor = -1
        outputDescriptor = -1
    }

    private func errorText(_ number: Int32) -> String { String(cString: strerror(number)) }
}

// MARK: - The thread's turn

extension ChildProcess: PollSource {
    package nonisolated var hasWork: Bool { false }
    package nonisolated func service() { assumeIsolated { $0.turn() } }

    package nonisolated func wait(wake: Int32) {
        let (process, output) = assumeIsolated { ($0.processDescriptor, $0.outputDescriptor) }
        // A negative descriptor is passed over by poll(2).
        var descriptors = [
            pollfd(fd: wake, events: Int16(POLLIN), revents: 0), pollfd(fd: process, events: Int16(POLLIN), revents: 0),
            pollfd(fd: output, events: Int16(POLLIN), revents: 0),
        ]
        // At most a second, so that a child without an owner is ended.
        _ = poll(&descriptors, 3, 1000)
    }

    private func turn() {
        drainOutput()
        reap()
    }

    /// Reads what it printed: a full pipe would stop it.
    private func drainOutput() {
        guard outputDescriptor >= 0 else { return }
        var buffer = [UInt8](repeating: 0, count: 4096)
        while true {
            let count = read(outputDescriptor, &buffer, buffer.count)
            if count > 0 {
                for byte in buffer[..<count] { collect(byte) }
            } else if count == 0 {
                close(outputDescriptor)
                outputDescriptor = -1
                return
            } else {
                return
            }
        }
    }

    private func collect(_ byte: UInt8) {
        guard byte == UInt8(ascii: "\n") else {
            if partial.count < Self.lineLimit { partial.append(byte) }
            return
        }
        let line = String(decoding: partial, as: UTF8.self)
        partial.removeAll(keepingCapacity: true)
        guard line.contains(where: { !$0.isWhitespace }) else { return }
        lines.append(line)
        if lines.count > Self.keptLines { lines.removeFirst() }
    }

    private func reap() {
        guard ending == nil, pid > 0 else { return }
        var status: Int32 = 0
        guard waitpid(pid, &status, WNOHANG) == pid else { return }
        let signal = status & 0x7F
        let ending: Ending = signal == 0 ? .exited((status >> 8) & 0xFF) : .signalled(signal)
        drainOutput()
        self.ending = ending
        // Grandchildren may hold the pipe open; nobody reads it any more.
        closeDescriptors()
        for waiter in waiters { waiter.resume(returning: ending) }
        waiters = []
    }
}
