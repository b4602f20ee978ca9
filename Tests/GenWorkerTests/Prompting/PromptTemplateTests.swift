import GenShared
import Testing

@testable import GenWorker

@Suite("Prompt template")
struct PromptTemplateTests {
    @Test("the rules come first, then the earlier turns, then the request", arguments: PromptTemplate.defaults.keys)
    func order(_ kind: JobKind) throws {
        let template = try #require(PromptTemplate.defaults[kind])
        var input = JobInput(text: "coffee {style} {text}")
        input.messages = [
            ConversationMessage(role: .user, content: "one {text}"),
            ConversationMessage(role: .assistant, content: "two"),
        ]
        let messages = template.messages(for: input)
        #expect(messages.map(\.role) == [.system, .user, .assistant, .user])
        #expect(messages[0].content == template.system && messages[1].content == "one {text}")
        // The user's text stands at the end, as it is.
        #expect(messages[3].content.hasSuffix("coffee {style} {text}"))
    }

    @Test("the rules are the same for every job of a kind", arguments: PromptTemplate.defaults.keys)
    func constantRules(_ kind: JobKind) throws {
        let template = try #require(PromptTemplate.defaults[kind])
        let first = template.messages(for: JobInput(text: "a", style: "b"))
        let second = template.messages(for: JobInput(text: "c"))
        #expect(first.first == second.first)
    }

    @Test("the job's style wins over the template's")
    func style() {
        let template = PromptTemplate(system: "", user: "{style}/{text}", defaultStyle: "plain", options: .init())
        #expect(template.messages(for: JobInput(text: "t")).map(\.content) == ["plain/t"])
        #expect(template.messages(for: JobInput(text: "t", style: "{text}")).map(\.content) == ["{text}/t"])
    }

    @Test(
        "braces that name nothing stay",
        arguments: [
            ("{", "{"), ("{}", "{}"), ("{ text}", "{ text}"), ("{{text}}", "{T}"), ("{text", "{text"),
            ("{text}{text}", "TT"), ("{unknown}{style}", "{unknown}S"),
        ])
    func braces(_ user: String, _ filled: String) {
        let template = PromptTemplate(system: "", user: user, defaultStyle: "S", options: .init())
        #expect(template.messages(for: JobInput(text: "T")).map(\.content) == [filled])
    }
}
