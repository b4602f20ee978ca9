import Foundation
import GenShared
import Testing

@testable import GenWorker

@Suite("Model file", .timeLimit(.minutes(1)))
struct ModelFileTests {
    private func message(_ path: String) -> String {
        do throws(JobFailure) {
            try ModelFile.check(path, backend: "b")
            return "accepted"
        } catch { return error.message }
    }

    @Test(
        "what is no model is told in one line, and never waited for: nothing, a folder, a device, a pipe, other content"
    )
    func noModels() throws {
        let path = "\(NSTemporaryDirectory())/gen-\(UUID().uuidString)"
        #expect(message(path).contains("there is no model file at \(path)"))
        for place in ["/", "/dev/zero", "/dev/null"] { #expect(message(place).contains("is not a plain file")) }
        try #require(mkfifo(path, 0o600) == 0)
        #expect(message(path).contains("is not a plain file"))
        unlink(path)
        for content in ["", "GGU", "GGML", "<html>"] {
            try Data(content.utf8).write(to: URL(filePath: path))
            #expect(message(path).contains("is not a GGUF model"), "\(content)")
        }
        unlink(path)
    }

    @Test("a link is judged by what it leads to: a model beyond the free memory is refused")
    func links() throws {
        let path = "\(NSTemporaryDirectory())/gen-\(UUID().uuidString)"
        defer { for name in [path, "\(path)-link"] { unlink(name) } }
        try Data("GGUF".utf8).write(to: URL(filePath: path))
        try #require(symlink(path, "\(path)-link") == 0)
        #expect(message("\(path)-link") == "accepted")
        // A hole, which takes no room.
        try #require(truncate(path, 1 << 42) == 0)
        #expect(message("\(path)-link").contains("needs 4194304 MiB of memory"))
    }
}
