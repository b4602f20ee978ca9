import GenShared

/// How a kind of job is put to a model: a constant system text, and the user's text set apart at the end.
///
/// The system text is the same for all jobs of a kind, so that the server's prompt cache can keep it.
struct PromptTemplate: Sendable, Equatable {
    /// The rules.
    ///
    /// Constant: nothing is filled in.
    var system: String
    /// The request; `{text}` and `{style}` are filled in.
    var user: String
    /// What `{style}` is where the job names none.
    var defaultStyle: String
    /// What is taken where the job does not say.
    var options: GenerationOptions

    /// The conversation for a job: rules, earlier turns, request.
    func messages(for input: JobInput) -> [ConversationMessage] {
        let style = input.style ?? defaultStyle
        // One pass, so that braces in the user's own text stay what they are.
        let request = Self.fill(user, ["{text}": input.text, "{style}": style])
        var messages: [ConversationMessage] = []
        if !system.isEmpty { messages.append(ConversationMessage(role: .system, content: system)) }
        messages += input.messages
        messages.append(ConversationMessage(role: .user, content: request))
        return messages
    }

    private static func fill(_ template: String, _ values: [String: String]) -> String {
        var filled = ""
        var rest = template[...]
        while let brace = rest.firstIndex(of: "{") {
            filled += rest[..<brace]
            rest = rest[brace...]
            if let (name, value) = values.first(where: { rest.hasPrefix($0.key) }) {
                filled += value
                rest = rest.dropFirst(name.count)
            } else {
                filled.append(rest.removeFirst())
            }
        }
        return filled + rest
    }
}

extension PromptTemplate {
    /// The templates that count unless the configuration says otherwise.
    static let defaults: [JobKind: PromptTemplate] = [
        .slogan: PromptTemplate(
            system: "You are an advertising copywriter. You answer with one short, catchy slogan on a single line "
                + "and nothing else: no quotation marks, no list, no explanation.",
            user: "Write one slogan of at most ten words for the business described below.\n\nBusiness: {text}",
            defaultStyle: "catchy", options: GenerationOptions(maxTokens: 48, temperature: 0.8)),
        .rewrite: PromptTemplate(
            system: "You are an editor. You rewrite drafts in the style that is asked for and keep their meaning. You "
                + "answer with the rewritten text only: one version, no comment, no quotation marks.",
            user:
                "Rewrite the draft below in this style: {style}. Give one version and nothing else.\n\nDraft:\n{text}",
            defaultStyle: "poetic", options: GenerationOptions(maxTokens: 512, temperature: 0.7)),
        .reply: PromptTemplate(
            system: "You answer messages on behalf of the person who received them. You answer with the text of the "
                + "reply only: one version, no comment, no quotation marks, no subject line.",
            user: "Write a reply to the message below. The reply should sound {style}.\n\nMessage:\n{text}",
            defaultStyle: "friendly and short", options: GenerationOptions(maxTokens: 256, temperature: 0.7)),
    ]
}

extension GenerationOptions {
    fileprivate init(maxTokens: Int, temperature: Double) {
        self.init()
        self.maxTokens = maxTokens
        self.temperature = temperature
    }
}
