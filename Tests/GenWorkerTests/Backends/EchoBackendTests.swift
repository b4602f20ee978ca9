import GenShared
import Testing

@testable import GenWorker

@Suite("Echo backend", .timeLimit(.minutes(1)))
struct EchoBackendTests {
    private func stream(
        _ text: String, maxTokens: Int? = nil, _ change: (inout EchoBackend.Settings) -> Void = { _ in }
    )
        -> any GenerationStream
    {
        var settings = EchoBackend.Settings()
        change(&settings)
        var options = GenerationOptions()
        options.maxTokens = maxTokens
        return EchoBackend(name: "echo", settings: settings).generate(
            GenerationRequest(
                kind: .reply, messages: [ConversationMessage(role: .user, content: text)], options: options))
    }

    private func pieces(_ stream: any GenerationStream) async throws -> ([String], FinishReason?) {
        var pieces: [String] = []
        var reason: FinishReason?
        while let event = try await stream.next() {
            if case .text(let piece) = event { pieces.append(piece) }
            if case .finished(let why, _, _) = event { reason = why }
        }
        return (pieces, reason)
    }

    @Test("it says the last message in pieces of so many scalars, so many times")
    func echoes() async throws {
        let (said, reason) = try await pieces(stream("abcdé🚋") { ($0.chunkSize, $0.times) = (4, 2) })
        #expect(said == ["abcd", "é🚋ab", "cdé🚋"] && reason == .stop)
    }

    @Test("a piece counts as a token: the limit cuts it")
    func tokenLimit() async throws {
        let (said, reason) = try await pieces(stream("abcdef", maxTokens: 2) { $0.chunkSize = 2 })
        #expect(said == ["ab", "cd"] && reason == .length)
    }

    @Test("it fails as it is told")
    func failures() async throws {
        for (failure, isRetryable, count) in [
            (EchoBackend.Failure.before, true, 0), (.middle, true, 2), (.permanent, false, 0),
        ] {
            let stream = stream("abcd") { ($0.chunkSize, $0.failure) = (1, failure) }
            var said = 0
            do {
                while try await stream.next() != nil { said += 1 }
                Issue.record("\(failure) did not fail")
            } catch let error as JobFailure { #expect(error.isRetryable == isRetryable) }
            #expect(said == count && stream.partialUsage?.completionTokens == count)
        }
    }

    @Test("a silent one ends when its task is cancelled")
    func silent() async {
        let stream = stream("abcd") { $0.failure = .silent }
        let task = Task { try await stream.next() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
    }
}
