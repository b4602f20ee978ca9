/// Reads one object of the configuration: every name must be known, every value of its type and within its bounds.
package struct SettingsReader {
    private let fields: JSONFields
    private let place: String
    private let file: ConfigurationFile

    package init(_ file: ConfigurationFile) {
        self.init(file.root, place: "", file: file)
    }

    private init(_ object: JSONObject, place: String, file: ConfigurationFile) {
        fields = JSONFields(object, path: place)
        self.place = place
        self.file = file
    }

    /// The names that stand in the object.
    package var names: [String] { fields.object.members.map(\.key).sorted() }

    /// Refuses every name but these.
    /// - Throws: `ConfigurationError`.
    package func allow(_ known: String...) throws(ConfigurationError) { try allow(known) }

    /// Refuses every name but these.
    /// - Throws: `ConfigurationError`.
    package func allow(_ known: [String]) throws(ConfigurationError) {
        for name in names where !known.contains(name) {
            throw wrong(name, "is unknown; known here: \(known.sorted().joined(separator: ", "))")
        }
    }

    package func has(_ name: String) -> Bool { fields.object[name] != nil }

    package func string(_ name: String) throws(ConfigurationError) -> String? {
        try read { fields throws(JobRejection) in try fields.string(name) }
    }

    package func strings(_ name: String) throws(ConfigurationError) -> [String]? {
        guard let values = try read({ fields throws(JobRejection) in try fields.array(name) }) else { return nil }
        let strings = values.compactMap(\.string)
        guard strings.count == values.count else { throw wrong(name, "must hold strings only") }
        return strings
    }

    package func integer(_ name: String, in range: ClosedRange<Int>) throws(ConfigurationError) -> Int? {
        try read { fields throws(JobRejection) in try fields.integer(name, in: range) }
    }

    package func number(_ name: String, in range: ClosedRange<Double>) throws(ConfigurationError) -> Double? {
        try read { fields throws(JobRejection) in try fields.number(name, in: range) }
    }

    package func bool(_ name: String) throws(ConfigurationError) -> Bool? {
        try read { fields throws(JobRejection) in try fields.bool(name) }
    }

    /// A time such as `30s`, `5m`, `250ms`.
    package func duration(_ name: String) throws(ConfigurationError) -> Duration? {
        guard let text = try string(name) else { return nil }
        guard let duration = DurationText.parse(text) else { throw wrong(name, "is no time such as 30s or 5m") }
        return duration
    }

    /// The object of that name.
    package func object(_ name: String) throws(ConfigurationError) -> SettingsReader? {
        guard let inner = try read({ fields throws(JobRejection) in try fields.fields(name) }) else { return nil }
        return SettingsReader(inner.object, place: fields.place(name), file: file)
    }

    /// Generation options, by the rules of a job's own.
    package func options(
        _ name: String, limits: JobLimits = JobLimits()
    ) throws(ConfigurationError) -> GenerationOptions? {
        guard let inner = try object(name) else { return nil }
        try inner.allow(
            "temperature", "top_p", "min_p", "repeat_penalty", "max_tokens", "seed", "stop", "model", "thinking")
        return try inner.read { fields throws(JobRejection) in
            try GenerationOptions(fields: fields, limits: limits)
        }
    }

    /// An error for a value here.
    package func wrong(_ name: String, _ reason: String) -> ConfigurationError {
        file.error(fields.place(name), "\(fields.place(name)) \(reason)")
    }

    private func read<Value>(
        _ body: (JSONFields) throws(JobRejection) -> Value
    ) throws(ConfigurationError) -> Value {
        do throws(JobRejection) { return try body(fields) } catch {
            throw file.error(error.field, error.description)
        }
    }
}

/// Times as people write them.
package enum DurationText {
    /// Reads `250ms`, `30s`, `1.5s`, `5m`, `2h`, `1d`; a bare number counts seconds.
    ///
    /// At most 30 days.
    package static func parse(_ text: String) -> Duration? {
        let digits = text.prefix { $0.isASCII && ($0.isNumber || $0 == ".") }
        guard !digits.isEmpty, digits.utf8.count <= 12, let number = Double(digits) else { return nil }
        let scale: Double
        switch text.dropFirst(digits.count) {
        case "ms": scale = 0.001
        case "", "s": scale = 1
        case "m": scale = 60
        case "h": scale = 3600
        case "d": scale = 86_400
        default: return nil
        }
        let seconds = number * scale
        guard seconds.isFinite, seconds <= 30 * 86_400 else { return nil }
        return .milliseconds(Int64((seconds * 1000).rounded()))
    }
}
