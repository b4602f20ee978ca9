extension JobLimits {
    /// The defaults, changed by the section `limits`, which submitters and workers share.
    /// - Throws: `ConfigurationError`.
    package init(file: ConfigurationFile?) throws(ConfigurationError) {
        self.init()
        guard let file, let section = try SettingsReader(file).object("limits") else { return }
        try section.allow("body_bytes", "prompt_bytes", "output_bytes", "max_tokens", "messages")
        // RabbitMQ 4 takes 16 MiB at most, headers included.
        bodyBytes = try section.integer("body_bytes", in: 1024...8 << 20) ?? bodyBytes
        promptBytes = try section.integer("prompt_bytes", in: 1...8 << 20) ?? promptBytes
        outputBytes = try section.integer("output_bytes", in: 1...8 << 20) ?? outputBytes
        maxTokens = try section.integer("max_tokens", in: 1...1_000_000) ?? maxTokens
        messages = try section.integer("messages", in: 0...10_000) ?? messages
    }
}
