import Testing

@testable import GenShared

@Suite("Job arguments")
struct JobArgumentsTests {
    private let specification = CommandSpecification(
        "submit", argumentCount: 0...2, summary: "", options: JobArguments.options)

    private func job(_ words: [String], kind: String = "slogan", text: String = "coffee") throws -> Job {
        try JobArguments.job(Arguments(words, specification), kind: kind, text: text)
    }

    private func message(_ words: [String], kind: String = "slogan", text: String = "coffee") -> String {
        do {
            _ = try job(words, kind: kind, text: text)
            return "accepted"
        } catch { return "\(error)" }
    }

    @Test("options become a job's own, each with its type")
    func options() throws {
        let options = try job([
            "--option", "temperature=0.2", "--option", "max_tokens=32", "--option", "stop=a=b", "--option", "stop=1",
            "--option", "model=7", "--option", "thinking=false", "--option=seed=4294967295",
        ]).options
        #expect(options.temperature == 0.2 && options.maxTokens == 32 && options.stop == ["a=b", "1"])
        #expect(options.model == "7" && options.thinking == false && options.seed == 4_294_967_295)
    }

    @Test("style, kind and text are taken over, and a new job has an id and a time")
    func whole() throws {
        let job = try job(["--style", "haiku"], kind: "rewrite", text: " a\nb ")
        #expect(job.kind == .rewrite && job.input.text == " a\nb " && job.input.style == "haiku")
        #expect(job.id.rawValue.count == 26 && job.createdAt != nil && job.pool == "text")
        #expect(try self.job([], kind: "image").input.image == ImageParameters())
    }

    @Test(
        "what no job can have is refused before anything is done",
        arguments: [
            (["--option", "temperature"], "is not NAME=VALUE"), (["--option", "=1"], "is not NAME=VALUE"),
            (["--option", "heat=1"], "\"heat\" is unknown; known are temperature"),
            (["--option", "temperature=hot"], "temperature: is a string"), (["--option", "temperature=3"], "is 3"),
            (["--option", "max_tokens=0"], "max_tokens: is 0"),
            (["--option", "max_tokens=1.5"], "must be a whole number"),
            (["--option", "seed=-1"], "seed: is -1"), (["--option", "thinking=maybe"], "must be true or false"),
            (["--style="], "style"),
        ])
    func wrongOptions(_ words: [String], _ part: String) {
        let message = message(words)
        #expect(message.contains(part), "\(message)")
    }

    @Test("a text that is empty, only white space or too long is refused in a short line")
    func wrongTexts() {
        #expect(message([], text: "") == "the text is empty")
        #expect(message([], text: " \n\t ") == "the text is empty")
        let long = message([], text: String(repeating: "x", count: 1 << 20))
        #expect(long.contains("allowed") && long.utf8.count < 200)
        #expect(message([], text: "-x --y") == "accepted")
        #expect(message([], kind: "poem").contains("\"poem\" is no kind of job; known are slogan"))
    }

    @Test("the line under a text tells tokens, speed and times, and what was estimated or cut")
    func completionLine() {
        var completion = Completion(
            result: "x", finishReason: .length,
            usage: Usage(promptTokens: 3, completionTokens: 2, isEstimated: true),
            stats: Stats(
                queueMilliseconds: 1, firstTokenMilliseconds: 20, totalMilliseconds: 300, tokensPerSecond: 12.345))
        #expect(
            CompletionLine.text(completion)
                == "[about 3 prompt + 2 completion tokens, 12.3 tokens/s, first text after 20 ms, queued 1 ms, "
                + "total 300 ms, cut at the token limit]")
        completion.finishReason = .stop
        completion.usage = nil
        completion.stats = Stats(
            queueMilliseconds: 0, firstTokenMilliseconds: nil, totalMilliseconds: 1, tokensPerSecond: nil)
        #expect(CompletionLine.text(completion) == "[queued 0 ms, total 1 ms]")
        for (word, shown) in [
            ("content_filter", "filter"), ("tool_calls", "tool"), ("a\u{1B}[2J\nb", "ended with a[2J b"),
        ] {
            completion.finishReason = FinishReason(rawValue: word)
            #expect(CompletionLine.text(completion).contains(shown))
        }
    }
}
