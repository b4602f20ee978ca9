/// Where the servers are: the environment over the configuration file over the defaults on this machine.
package struct ServerSettings: Sendable {
    package var amqp: AMQPURL
    package var redis: RedisURL

    /// - Throws: `ConfigurationError` that names the setting.
    package init(environment: [String: String], file: ConfigurationFile?) throws(ConfigurationError) {
        let settings = file.map { SettingsReader($0) }
        var amqpText = try Self.value("GEN_AMQP_URL", environment)
        if amqpText == nil { amqpText = try settings?.string("amqp_url") }
        var redisText = try Self.value("GEN_REDIS_URL", environment)
        if redisText == nil { redisText = try settings?.string("redis_url") }
        do throws(URLRejection) {
            amqp = try AMQPURL(amqpText ?? "amqp://127.0.0.1:5672/")
            redis = try RedisURL(redisText ?? "redis://127.0.0.1:6379/0")
        } catch { throw ConfigurationError(error.description) }
    }

    /// A setting from the environment, or from the file that `<NAME>_FILE` names, so that a secret need not stand in
    /// the environment.
    /// - Throws: `ConfigurationError`.
    package static func value(
        _ name: String, _ environment: [String: String]
    ) throws(ConfigurationError) -> String? {
        if let value = environment[name], !value.isEmpty { return value }
        guard let path = environment["\(name)_FILE"], !path.isEmpty else { return nil }
        let content: [UInt8]
        do throws(BoundedFile.Failure) {
            content = try BoundedFile.read(path, limit: 4096)
        } catch {
            guard case .unreadable(let why) = error else {
                throw ConfigurationError("\(name)_FILE: \(path) is not a short text: it has more than 4096 bytes")
            }
            throw ConfigurationError("\(name)_FILE: \(path) cannot be read: \(why)")
        }
        guard var text = String(validating: content, as: UTF8.self) else {
            throw ConfigurationError("\(name)_FILE: \(path) is not a short text: it is not UTF-8")
        }
        if text.last?.isNewline == true { text.removeLast() }
        guard !text.isEmpty else { throw ConfigurationError("\(name)_FILE: \(path) is empty") }
        return text
    }
}
