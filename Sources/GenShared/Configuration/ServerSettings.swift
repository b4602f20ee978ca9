/// Where the servers are: the environment over the configuration file over the defaults on this machine.
package struct ServerSettings: Sendable {
    package var amqp: AMQPURL
    package var redis: RedisURL
    /// What should be mended though it works, one line each; whoever has read the settings tells the user.
    package private(set) var warnings: [String] = []

    /// - Throws: `ConfigurationError` that names the setting.
    package init(environment: [String: String], file: ConfigurationFile?) throws(ConfigurationError) {
        var warnings: [String] = []
        let amqpText = try Self.text("GEN_AMQP_URL", "amqp_url", environment, file, &warnings)
        let redisText = try Self.text("GEN_REDIS_URL", "redis_url", environment, file, &warnings)
        do throws(URLRejection) {
            amqp = try AMQPURL(amqpText ?? "amqp://127.0.0.1:5672/")
            redis = try RedisURL(redisText ?? "redis://127.0.0.1:6379/0")
        } catch { throw ConfigurationError(error.description) }
        self.warnings = warnings
    }

    /// A setting from the environment, from the file that `<VARIABLE>_FILE` names, so that a secret need not stand in
    /// the environment, or from the configuration.
    private static func text(
        _ variable: String, _ name: String, _ environment: [String: String], _ file: ConfigurationFile?,
        _ warnings: inout [String]
    ) throws(ConfigurationError) -> String? {
        if let value = environment[variable], !value.isEmpty { return value }
        if let path = environment["\(variable)_FILE"], !path.isEmpty {
            let secret = try SecretFile(path: path, setting: "\(variable)_FILE")
            if let warning = secret.warning { warnings.append(warning) }
            return secret.text
        }
        guard let file, let text = try SettingsReader(file).string(name) else { return nil }
        // Only what stands before an @ is secret.
        if file.othersMayRead, text.contains("@") {
            warnings.append(
                "\(file.path): \(name) holds a password, and the file may be read by anybody; run: chmod o-r \(file.path)"
            )
        }
        return text
    }
}
