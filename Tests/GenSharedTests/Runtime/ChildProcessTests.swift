import Foundation
import GenTestSupport
import Testing

@testable import GenShared

@Suite("Child process", .timeLimit(.minutes(1)))
struct ChildProcessTests {
    @Test("its status is told to everybody who waits, and to who asks later")
    func status() async throws {
        let child = ChildProcess(name: "child")
        async let first = child.end()
        async let second = child.end()
        try await child.start(["sh", "-c", "exit 7"])
        #expect(await [first, second] == [.exited(7), .exited(7)])
        #expect(await child.end() == .exited(7))
        #expect(await child.currentEnding == .exited(7))
        #expect("\(ChildProcess.Ending.exited(7))".contains("status 7"))
        // A signal to what has ended goes nowhere.
        await child.signal(9)
    }

    @Test("lines are cut, empty ones and an unfinished end are left out")
    func lines() async throws {
        let child = ChildProcess(name: "child")
        try await child.start([
            "sh", "-c", "head -c 5000 /dev/zero | tr '\\0' x; printf '\\n\\n  \\nlast\\nunfinished'",
        ])
        #expect(await child.end() == .exited(0))
        #expect(await child.lastLines == [String(repeating: "x", count: 1000), "last"])
    }

    @Test("a program that is missing says so in its last lines")
    func missing() async throws {
        let child = ChildProcess(name: "child")
        try await child.start(["/nowhere/llama-server"])
        guard case .exited(let status) = await child.end() else {
            Issue.record("no exit")
            return
        }
        #expect(status != 0)
        #expect(await child.lastLines.contains { $0.contains("/nowhere/llama-server") })
    }

    @Test("our own environment is passed on, and what is added wins")
    func environment() async throws {
        let child = ChildProcess(name: "child")
        try await child.start(["sh", "-c", "echo \"$PATH\"; echo \"$HOME\""], environment: ["HOME": "/elsewhere"])
        #expect(await child.end() == .exited(0))
        let path = ProcessInfo.processInfo.environment["PATH"] ?? ""
        #expect(await child.lastLines == [path, "/elsewhere"])
    }

    @Test("a child whose owner is gone is gone, too")
    func ownerGone() async throws {
        let path = "\(NSTemporaryDirectory())/gen-\(UUID().uuidString)"
        #expect(mkfifo(path, 0o600) == 0)
        defer { unlink(path) }
        let seen = Journal<String>()
        // Reads to the end of the pipe: the end comes when the child, who alone writes to it, is gone.
        DispatchQueue.global().async {
            let descriptor = open(path, O_RDONLY)
            var byte: UInt8 = 0
            while read(descriptor, &byte, 1) == 1 { seen.append("up") }
            close(descriptor)
            seen.append("gone")
        }
        do {
            let child = ChildProcess(name: "child")
            try await child.start(["sh", "-c", "exec 3>\(path); printf x >&3; exec sleep 1000"])
            #expect(await seen.wait(for: 1) == ["up"])
            #expect(await child.currentEnding == nil)
        }
        #expect(await seen.wait(for: 2) == ["up", "gone"])
    }
}
