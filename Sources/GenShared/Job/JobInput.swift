/// What a job is about.
public struct JobInput: Sendable, Equatable {
    /// The business, the draft, the message, or the picture's prompt.
    public var text: String
    /// How the result should sound, for rewrites and replies.
    public var style: String?
    /// Earlier turns of the conversation, oldest first.
    public var messages: [ConversationMessage]
    /// A JSON Schema that the result must fit.
    public var schema: JSONValue?
    /// What the picture should be like, for image jobs.
    public var image: ImageParameters?

    /// An input.
    public init(
        text: String, style: String? = nil, messages: [ConversationMessage] = [], schema: JSONValue? = nil,
        image: ImageParameters? = nil
    ) {
        self.text = text
        self.style = style
        self.messages = messages
        self.schema = schema
        self.image = image
    }
}

/// One turn of a conversation.
public struct ConversationMessage: Sendable, Equatable {
    /// Who spoke.
    public enum Role: String, Sendable {
        /// The rules that stand above the conversation.
        case system
        /// The person.
        case user
        /// The model.
        case assistant
    }

    /// Who spoke.
    public var role: Role
    /// What was said.
    public var content: String

    /// A turn.
    public init(role: Role, content: String) {
        self.role = role
        self.content = content
    }
}

/// What a picture should be like.
public struct ImageParameters: Sendable, Equatable {
    /// Pixels across.
    public var width = 1024
    /// Pixels down.
    public var height = 1024
    /// How closely the prompt is followed, 0 to 50.
    public var guidanceScale = 7.5
    /// Steps of denoising, 1 to 150.
    public var inferenceSteps = 30
    /// Makes the picture repeatable, 0 to 2³²-1.
    public var seed: Int?
    /// How many pictures.
    public var count = 1

    /// The defaults.
    public init() {}
}
