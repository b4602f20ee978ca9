import GenShared

/// Everything that a worker is told, checked.
struct WorkerConfiguration: Sendable {
    /// A pool of this worker.
    struct Pool: Sendable {
        var name: String
        var kinds: [JobKind]
        var slots: Int
        var batchMinSlots: Int
        /// Names of backends, in order of preference.
        var backends: [String]
    }

    /// What kind of backend, with its settings.
    enum Backend: Sendable {
        case echo(EchoBackend.Settings)
        case llamaServer(LlamaServerBackend.Place)
    }

    var servers: ServerSettings
    var pools: [Pool]
    var backends: [(name: String, backend: Backend)]
    var templates = PromptTemplate.defaults
    var limits = JobLimits()
    var timers = ExecutionTimers()
    /// How long running jobs may take to finish after SIGTERM.
    var drain: Duration = .seconds(25)
    /// What should be mended though it works, one line each; whoever has read the configuration tells the user.
    var warnings: [String] = []

    /// - Throws: `ConfigurationError`.
    static func load(file name: String?, environment: [String: String]) throws(ConfigurationError) -> Self {
        let named = name ?? environment["GEN_CONFIG"]
        let file = try ConfigurationFile.load(named: named, environment: environment)
        let servers = try ServerSettings(environment: environment, file: file)
        var configuration = WorkerConfiguration(servers: servers, pools: [], backends: [])
        configuration.warnings = servers.warnings
        configuration.limits = try JobLimits(file: file)
        if let file { try configuration.read(SettingsReader(file), environment) }
        if configuration.backends.isEmpty { try configuration.addDefaultBackend(environment) }
        if configuration.pools.isEmpty { configuration.addDefaultPool() }
        try configuration.check()
        return configuration
    }

    private mutating func read(
        _ settings: SettingsReader, _ environment: [String: String]
    ) throws(ConfigurationError) {
        if let section = try settings.object("backends") {
            for name in section.names {
                if let entry = try section.object(name) {
                    backends.append((name, try BackendSettings.read(entry, environment, &warnings)))
                }
            }
        }
        if let section = try settings.object("pools") {
            for name in section.names {
                if let entry = try section.object(name) { pools.append(try readPool(name, entry, section)) }
            }
        }
        if let section = try settings.object("templates") { try readTemplates(section) }
        if let section = try settings.object("timers") {
            try section.allow("first_event", "gap")
            timers.firstEvent = try section.duration("first_event") ?? timers.firstEvent
            timers.gap = try section.duration("gap") ?? timers.gap
        }
        drain = try settings.duration("drain") ?? drain
    }

    private func readPool(
        _ name: String, _ entry: SettingsReader, _ section: SettingsReader
    ) throws(ConfigurationError) -> Pool {
        guard Job.isPoolName(name) else {
            throw section.wrong(name, "is no name for a pool: 1 to 32 letters, digits, _ or -")
        }
        try entry.allow("kinds", "slots", "batch_min_slots", "backends")
        var kinds: [JobKind] = []
        for text in try entry.strings("kinds") ?? ["slogan", "rewrite", "reply"] {
            guard let kind = JobKind(rawValue: text) else {
                throw entry.wrong("kinds", "has \"\(text.prefix(20))\"; known are slogan, rewrite, reply, image")
            }
            kinds.append(kind)
        }
        let slots = try entry.integer("slots", in: 1...1024) ?? 4
        return Pool(
            name: name, kinds: kinds, slots: slots,
            batchMinSlots: try entry.integer("batch_min_slots", in: 0...slots) ?? 0,
            backends: try entry.strings("backends") ?? [])
    }

    private mutating func readTemplates(_ section: SettingsReader) throws(ConfigurationError) {
        for name in section.names {
            guard let kind = JobKind(rawValue: name), let entry = try section.object(name) else {
                throw section.wrong(name, "is no kind of job with a template; known are slogan, rewrite, reply")
            }
            try entry.allow("system", "user", "style", "options")
            var template =
                templates[kind]
                ?? PromptTemplate(system: "", user: "{text}", defaultStyle: "", options: GenerationOptions())
            template.system = try entry.string("system") ?? template.system
            template.user = try entry.string("user") ?? template.user
            template.defaultStyle = try entry.string("style") ?? template.defaultStyle
            if let options = try entry.options("options", limits: limits) {
                template.options = options.filled(from: template.options)
            }
            guard template.user.contains("{text}") else { throw entry.wrong("user", "must contain {text}") }
            templates[kind] = template
        }
    }

    /// Without a configuration: llama.cpp's server from PATH with the model that GEN_MODEL names.
    private mutating func addDefaultBackend(_ environment: [String: String]) throws(ConfigurationError) {
        guard let model = environment["GEN_MODEL"], !model.isEmpty else {
            throw ConfigurationError(
                "no backend is configured: set GEN_MODEL to a GGUF file, or write `backends` into a configuration "
                    + "and name it with --config or GEN_CONFIG")
        }
        let command = environment["GEN_LLAMA_SERVER"] ?? "llama-server"
        let settings = LlamaServerProcess.Settings(command: command, model: model)
        backends.append(("local", .llamaServer(.supervised(settings))))
    }

    private mutating func addDefaultPool() {
        pools.append(
            Pool(
                name: "text", kinds: [.slogan, .rewrite, .reply], slots: 4, batchMinSlots: 0,
                backends: backends.map(\.name)))
    }

    private func check() throws(ConfigurationError) {
        for pool in pools {
            guard !pool.backends.isEmpty else {
                throw ConfigurationError("pools.\(pool.name): `backends` must name at least one backend")
            }
            for name in pool.backends {
                guard let entry = backends.first(where: { $0.name == name }) else {
                    let known = backends.map(\.name).joined(separator: ", ")
                    throw ConfigurationError("pools.\(pool.name): there is no backend \"\(name)\"; known are \(known)")
                }
                guard case .llamaServer = entry.backend else { continue }
                guard pools.count(where: { $0.backends.contains(name) }) == 1 else {
                    throw ConfigurationError("backend \"\(name)\" belongs to two pools; a local backend serves one")
                }
            }
        }
    }
}
