import Foundation

import Synchronization

/// A program under test: what it prints, line by line, and its end.
package final class RunningProgram: Sendable {
    /// Thrown where a program did not do in time what the test waits for.
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
    private let process = Process()
    private let state = Mutex(State())

    /// Starts a program.
    package init(_ path: String, _ arguments: [String], environment: [String: String], input: String? = nil) throws {
        name = URL(filePath: path).lastPathComponent
        process.executableURL = URL(filePath: path)
        process.arguments = arguments
        process.environment = environment
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        let stdin = Pipe()
        process.standardInput = input == nil ? FileHandle.nullDevice : stdin
        let (outputHandle, errorHandle) = (output.fileHandleForReading, errors.fileHandleForReading)
        outputHandle.readabilityHandler = { [weak self] in self?.take($0, \.output) }
        errorHandle.readabilityHandler = { [weak self] in self?.take($0, \.errors) }
        process.terminationHandler = { [weak self] process in
            let status =
                process.terminationReason == .exit ? process.terminationStatus : 128 + process.terminationStatus
            // No waiting for the pipes' end: a program that another test starts at the same moment may hold them open.
            self?.drain(outputHandle, \.output)
            self?.drain(errorHandle, \.errors)
            self?.change { $0.status = status }
        }
        try process.run()
        if let input {
            try stdin.fileHandleForWriting.write(contentsOf: Data(input.utf8))
            try stdin.fileHandleForWriting.close()
        }
    }

    deinit { if process.isRunning { kill(process.processIdentifier, SIGKILL) } }

    package var processID: Int32 { process.processIdentifier }
    package var output: String { String(decoding: state.withLock { $0.output }, as: UTF8.self) }
    package var errors: String { String(decoding: state.withLock { $0.errors }, as: UTF8.self) }

    /// Sends a signal.
    package func signal(_ number: Int32) { kill(process.processIdentifier, number) }

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

    // One reader at a time, so that the pieces stay in order.
    private let reading = Mutex(())

    private func take(_ handle: FileHandle, _ place: any WritableKeyPath<State, [UInt8]> & Sendable) {
        let isAtEnd = reading.withLock { _ in
            let data = handle.availableData
            change { $0[keyPath: place].append(contentsOf: data) }
            return data.isEmpty
        }
        if isAtEnd { handle.readabilityHandler = nil }
    }

    /// Reads what is left without waiting.
    private func drain(_ handle: FileHandle, _ place: any WritableKeyPath<State, [UInt8]> & Sendable) {
        handle.readabilityHandler = nil
        reading.withLock { _ in
            let descriptor = handle.fileDescriptor
            _ = fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK)
            var buffer = [UInt8](repeating: 0, count: 65_536)
            while true {
                let count = read(descriptor, &buffer, buffer.count)
                guard count > 0 else { return }
                change { $0[keyPath: place].append(contentsOf: buffer[..<count]) }
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
