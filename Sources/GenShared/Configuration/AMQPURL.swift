/// Where RabbitMQ is: `amqp://[user:password@]host[:port][,host[:port]…][/vhost]`.
///
/// Several hosts are the nodes of one cluster: whichever answers will do.
public struct AMQPURL: Sendable, Equatable {
    /// At least one, as written; the port is 5672 unless given (5671 with TLS).
    public private(set) var hosts: [ServerAddress]
    /// The user, `guest` unless given.
    public var user: String
    /// The password, `guest` unless given.
    public var password: Secret
    /// The virtual host, `/` unless given.
    public var virtualHost: String
    /// Whether the connection is encrypted and the server's certificate verified (`amqps://`).
    public var isEncrypted: Bool

    /// Reads a URL.
    /// - Parameter variable: the name of the setting, for the error message.
    /// - Throws: `URLRejection` that says which part is wrong, without a secret.
    public init(_ text: String, variable: String = "GEN_AMQP_URL") throws(URLRejection) {
        let example = "amqp://user:password@127.0.0.1:5672/"
        let url = try ServerURL(text, variable: variable, schemes: ["amqp", "amqps"], example: example)
        if url.user != nil, url.password == nil {
            throw URLRejection(description: "\(variable): there is a user without a password; write user:password@")
        }
        isEncrypted = url.scheme == "amqps"
        let usualPort = isEncrypted ? 5671 : 5672
        hosts = url.places.map { ServerAddress(host: $0.host, port: $0.port ?? usualPort) }
        user = url.user ?? "guest"
        password = Secret(url.password ?? "guest")
        // The RabbitMQ URI specification: no path, or a lone slash, is the default vhost for us; %2F names it, too.
        virtualHost = url.path.flatMap { $0.isEmpty ? nil : $0 } ?? "/"
        guard user.utf8.count <= 255, virtualHost.utf8.count <= 255 else {
            throw URLRejection(description: "\(variable): user and vhost may have 255 bytes each")
        }
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
