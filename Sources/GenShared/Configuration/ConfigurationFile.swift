import Glibc

/// What is wrong with a setting, named with its place.
public struct ConfigurationError: Error, Sendable, CustomStringConvertible {
    /// One line for a person.
    public let description: String

    package init(_ description: String) { self.description = description }
}

/// A JSON5 file with settings; unknown names and wrong types are refused with their place.
package struct ConfigurationFile: Sendable {
    package let path: String
    package let root: JSONObject
    /// The line of each setting, by its place.
    let lines: [String: Int]
    /// Whether users beside owner and group may read the file.
    private(set) var othersMayRead = false

    /// Reads the file that was named, or the first of the usual ones that exists.
    /// - Returns: `nil` where none is named and none exists.
    /// - Throws: `ConfigurationError`.
    package static func load(
        named name: String?, environment: [String: String]
    ) throws(ConfigurationError) -> ConfigurationFile? {
        if let name { return try ConfigurationFile(path: name) }
        let home = environment["XDG_CONFIG_HOME"] ?? environment["HOME"].map { "\($0)/.config" }
        let usual = [home.map { "\($0)/gencluster/config.json5" }, "/etc/gencluster/config.json5"].compactMap(\.self)
        guard let path = usual.first(where: { access($0, F_OK) == 0 }) else { return nil }
        return try ConfigurationFile(path: path)
    }

    /// The names that may stand at the top: workers and dispatchers share a file.
    package static let sections = [
        "amqp_url", "redis_url", "backends", "pools", "templates", "timers", "drain", "limits",
    ]

    private static let sizeLimit = 1 << 20

    private static func tooLarge(_ path: String) -> ConfigurationError {
        ConfigurationError("the configuration \(path) is larger than 1 MiB")
    }

    /// Reads a file.
    /// - Throws: `ConfigurationError`.
    package init(path: String) throws(ConfigurationError) {
        let content: BoundedFile.Content
        do throws(BoundedFile.Failure) {
            content = try BoundedFile.read(path, limit: Self.sizeLimit)
        } catch {
            switch error {
            case .unreadable(let why): throw ConfigurationError("the configuration \(path) cannot be read: \(why)")
            case .tooLarge: throw Self.tooLarge(path)
            case .silent: throw ConfigurationError("the configuration \(path) cannot be read: nobody writes into it")
            }
        }
        // It names the programs that a worker starts and the servers that are sent passwords.
        guard !content.othersMayWrite else {
            throw ConfigurationError("the configuration \(path) may be written by anybody; run: chmod o-w \(path)")
        }
        try self.init(path: path, data: content.bytes)
        othersMayRead = content.othersMayRead
        try SettingsReader(self).allow(Self.sections)
    }

    init(path: String, data: some Sequence<UInt8>) throws(ConfigurationError) {
        let bytes = Array(data)
        guard bytes.count <= Self.sizeLimit else { throw Self.tooLarge(path) }
        let document: JSON5Parser.Document
        do { document = try JSON5Parser.parse(bytes) } catch {
            throw ConfigurationError("the configuration \(path) is not JSON5: \(error)")
        }
        guard let object = document.value.object else {
            throw ConfigurationError("the configuration \(path) is \(document.value.kindName), not an object")
        }
        self.path = path
        root = object
        lines = document.lines
    }

    /// An error about the setting at a place, with its line where the file has it.
    func error(_ place: String, _ message: String) -> ConfigurationError {
        // A member of a list has no line of its own; the list has.
        let known = lines[place] ?? lines[String(place.prefix { $0 != "[" })]
        return ConfigurationError("\(path):\(known.map { "\($0):" } ?? "") \(message)")
    }
}
