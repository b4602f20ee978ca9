import Foundation
import Synchronization

/// What a program under test has said, and how it ended; filled by the thread that follows it.
final class ProgramRecord: Sendable {
    private struct State {
        var process: Result<pid_t, any Error>?
        var output: [UInt8] = []
        var errors: [UInt8] = []
        var status: Int32?
        var waiters: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())
    private let isSpawned = DispatchSemaphore(value: 0)

    var output: String { String(decoding: state.withLock { $0.output }, as: UTF8.self) }
    var errors: String { String(decoding: state.withLock { $0.errors }, as: UTF8.self) }
    var status: Int32? { state.withLock { $0.status } }

    // MARK: The thread's side

    func spawned(_ process: Result<pid_t, any Error>) {
        state.withLock { $0.process = process }
        isSpawned.signal()
    }

    /// Reads until the program has ended.
    ///
    /// Its end does not wait for the pipes': another program may hold them open.
    func follow(_ output: Int32, _ errors: Int32) {
        defer {
            close(output)
            close(errors)
        }
        guard case .success(let process)? = state.withLock({ $0.process }) else { return }
        while true {
            var entries = [output, errors].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            _ = poll(&entries, 2, 10)
            drain(output, \.output)
            drain(errors, \.errors)
            var status: Int32 = 0
            guard waitpid(process, &status, WNOHANG) == process else {
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

    // MARK: The test's side

    /// Waits for the moment that spawning takes.
    func waitForSpawn(of path: String) throws -> pid_t {
        isSpawned.wait()
        guard let process = state.withLock({ $0.process }) else { throw RunningProgram.TooLate(description: path) }
        return try process.get()
    }

    func signal(_ number: Int32) {
        state.withLock { state in
            // Once it was reaped, its number may be another's.
            guard state.status == nil, case .success(let process)? = state.process else { return }
            kill(process, number)
        }
    }

    /// Waits until the test answers; it is asked again after each change.
    /// - Returns: the answer, or `nil` when there was none within the limit.
    func wait(within limit: Duration, for answer: (ProgramRecord) -> Bool?) async -> Bool? {
        let timer = Task { [self] in
            do { try await Task.sleep(for: limit) } catch { return }
            change { _ in }
        }
        defer { timer.cancel() }
        let deadline = ContinuousClock.now + limit
        while true {
            if let answer = answer(self) { return answer }
            guard ContinuousClock.now < deadline else { return nil }
            await withCheckedContinuation { continuation in
                state.withLock { $0.waiters.append(continuation) }
                // What has changed since it was asked would not wake us: ask again.
                if answer(self) != nil || ContinuousClock.now >= deadline { change { _ in } }
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
