import GenShared

/// Reads one entry of `backends`.
enum BackendSettings {
    static func read(
        _ entry: SettingsReader, _ environment: [String: String], _ warnings: inout [String]
    ) throws(ConfigurationError) -> WorkerConfiguration.Backend {
        switch try entry.string("type") {
        case "llama-server": return .llamaServer(try llamaServer(entry, environment, &warnings))
        case "echo": return .echo(try echo(entry))
        case nil: throw entry.wrong("type", "is missing; known are llama-server, echo")
        case .some(let other): throw entry.wrong("type", "is \"\(other.prefix(30))\"; known are llama-server, echo")
        }
    }

    private static func llamaServer(
        _ entry: SettingsReader, _ environment: [String: String], _ warnings: inout [String]
    ) throws(ConfigurationError) -> LlamaServerBackend.Place {
        if let url = try entry.string("url") {
            try entry.allow("type", "url", "api_key_file", "parallel", "start_timeout")
            return .address(
                url: try checked(url, entry), key: try key(entry, &warnings),
                slots: try entry.integer("parallel", in: 1...1024) ?? 4,
                startTimeout: try entry.duration("start_timeout") ?? .seconds(10))
        }
        try entry.allow("type", "command", "model", "parallel", "context", "threads", "arguments", "start_timeout")
        guard let model = try entry.string("model") ?? environment["GEN_MODEL"] else {
            throw entry.wrong("model", "is missing: name a GGUF file here or in GEN_MODEL, or an `url`")
        }
        let command = try entry.string("command") ?? environment["GEN_LLAMA_SERVER"] ?? "llama-server"
        guard !command.hasPrefix("-"), !model.hasPrefix("-") else {
            throw entry.wrong("command", "and `model` must not begin with -")
        }
        var settings = LlamaServerProcess.Settings(command: command, model: model)
        settings.parallel = try entry.integer("parallel", in: 1...1024) ?? settings.parallel
        settings.context = try entry.integer("context", in: 128...1_048_576) ?? settings.context
        settings.threads = try entry.integer("threads", in: 1...1024)
        settings.arguments = try entry.strings("arguments") ?? []
        settings.startTimeout = try entry.duration("start_timeout") ?? settings.startTimeout
        return .supervised(settings)
    }

    /// The begin of a server's URLs, without the slash at its end.
    private static func checked(_ url: String, _ entry: SettingsReader) throws(ConfigurationError) -> String {
        let schemes = ["http://", "https://"]
        guard let scheme = schemes.first(where: url.hasPrefix), url.utf8.count > scheme.utf8.count,
            url.utf8.allSatisfy({ (0x21...0x7E).contains($0) })
        else { throw entry.wrong("url", "must begin with http:// or https://, and have no spaces") }
        // Errors and logs name the URL, and the paths of requests are put behind it.
        guard !url.contains("@"), !url.contains("?"), !url.contains("#") else {
            throw entry.wrong("url", "must hold no password, no ? and no #; a key goes into `api_key_file`")
        }
        return url.hasSuffix("/") ? String(url.dropLast()) : url
    }

    private static func key(
        _ entry: SettingsReader, _ warnings: inout [String]
    ) throws(ConfigurationError) -> Secret? {
        guard let path = try entry.string("api_key_file") else { return nil }
        let file = try SecretFile(path: path, setting: "api_key_file")
        // It becomes a header, which has no other characters.
        guard file.text.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) else {
            throw entry.wrong(
                "api_key_file", "must name a file with a key of ASCII letters, digits and signs, no spaces")
        }
        if let warning = file.warning { warnings.append(warning) }
        return Secret(file.text)
    }

    private static func echo(_ entry: SettingsReader) throws(ConfigurationError) -> EchoBackend.Settings {
        try entry.allow("type", "chunk_size", "delay", "times", "failure", "parallel")
        var settings = EchoBackend.Settings()
        settings.chunkSize = try entry.integer("chunk_size", in: 1...1_000_000) ?? settings.chunkSize
        settings.delay = try entry.duration("delay") ?? settings.delay
        settings.times = try entry.integer("times", in: 1...10_000) ?? settings.times
        settings.capacity = try entry.integer("parallel", in: 1...1024) ?? settings.capacity
        if let text = try entry.string("failure") {
            guard let failure = EchoBackend.Failure(rawValue: text) else {
                let known = EchoBackend.Failure.allCases.map(\.rawValue).joined(separator: ", ")
                throw entry.wrong("failure", "is not one of \(known)")
            }
            settings.failure = failure
        }
        return settings
    }
}
