/// Where Redis is: `redis://[[user]:password@]host[:port][,host[:port]…][/database]`.
///
/// Several hosts are a primary and its replicas: the one that is the primary will do.
public struct RedisURL: Sendable, Equatable {
    /// At least one, as written; the port is 6379 unless given.
    public private(set) var hosts: [ServerAddress]
    /// The ACL user; `nil` is Redis' default user.
    public var user: String?
    /// The password.
    public var password: Secret?
    /// The database's number, 0 to 65535.
    public var database: Int

    /// Reads a URL.
    /// - Parameter variable: the name of the setting, for the error message.
    /// - Throws: `URLRejection` that says which part is wrong, without a secret.
    public init(_ text: String, variable: String = "GEN_REDIS_URL") throws(URLRejection) {
        let example = "redis://127.0.0.1:6379/0"
        let url = try ServerURL(text, variable: variable, schemes: ["redis", "rediss"], example: example)
        guard url.scheme == "redis" else {
            throw URLRejection(
                description: "\(variable): rediss:// needs a hiredis with TLS, which this build does not have; "
                    + "use redis:// inside a trusted network or a TLS tunnel")
        }
        if url.user != nil, url.password == nil {
            throw URLRejection(description: "\(variable): there is a user without a password; write user:password@")
        }
        hosts = url.places.map { ServerAddress(host: $0.host, port: $0.port ?? 6379) }
        user = url.user
        password = url.password.map(Secret.init)
        let path = url.path ?? ""
        guard let database = path.isEmpty ? 0 : Int(path), (0...65535).contains(database), !path.hasPrefix("+"),
            path != "-0"
        else {
            throw URLRejection(description: "\(variable): the database must be a number; expected \(example)")
        }
        self.database = database
    }

    /// The first host's name or address.
    public var host: String {
        get { hosts[0].host }
        set { hosts[0].host = newValue }
    }
    /// The first host's port.
    public var port: Int {
        get { hosts[0].port }
        set { hosts[0].port = newValue }
    }
    /// Each `host:port`, for messages; no secret.
    public var place: String { hosts.map(\.description).joined(separator: ",") }
}
