/// One of the hosts under which a server can be reached.
public struct ServerAddress: Sendable, Hashable, CustomStringConvertible {
    /// Name or address; an IPv6 address without its brackets.
    public var host: String
    /// Port, 1 to 65535.
    public var port: Int

    /// An address.
    public init(host: String, port: Int) {
        self.host = host
        self.port = port
    }

    /// `host:port`, with brackets round an IPv6 address.
    public var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }
}
