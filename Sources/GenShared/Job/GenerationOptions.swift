/// How a text is to be generated; `nil` leaves a value to the worker's configuration, then to the backend.
public struct GenerationOptions: Sendable, Equatable {
    /// Randomness, 0 to 2.
    public var temperature: Double?
    /// Nucleus sampling, 0.01 to 1.
    public var topP: Double?
    /// Least probability beside the likeliest token, 0 to 1.
    public var minP: Double?
    /// Penalty for what was said before, 0.01 to 2.
    public var repeatPenalty: Double?
    /// Tokens of the answer, 1 to the limit (8192).
    public var maxTokens: Int?
    /// Makes sampling repeatable, 0 to 2³²-1.
    public var seed: Int?
    /// Texts that end the answer: at most 8, each of 1 to 256 bytes.
    public var stop: [String] = []
    /// A model that the backend knows under this name, at most 128 bytes.
    public var model: String?
    /// Whether a reasoning model may think first.
    public var thinking: Bool?

    /// No wishes.
    public init() {}

    /// These options where they are set, else the others.
    public func filled(from defaults: GenerationOptions) -> GenerationOptions {
        var merged = self
        merged.temperature = temperature ?? defaults.temperature
        merged.topP = topP ?? defaults.topP
        merged.minP = minP ?? defaults.minP
        merged.repeatPenalty = repeatPenalty ?? defaults.repeatPenalty
        merged.maxTokens = maxTokens ?? defaults.maxTokens
        merged.seed = seed ?? defaults.seed
        merged.stop = stop.isEmpty ? defaults.stop : stop
        merged.model = model ?? defaults.model
        merged.thinking = thinking ?? defaults.thinking
        return merged
    }
}
