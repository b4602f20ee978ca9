import FoundationEssentials

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

    /// Reads the file that was named, or the first of the usual ones that exists.
    /// - Returns: `nil` where none is named and none exists.
    /// - Throws: `ConfigurationError`.
    package static func load(
        named name: String?, environment: [String: String]
    ) throws(ConfigurationError) -> ConfigurationFile? {
        if let name { return try ConfigurationFile(path: name) }
        let home = environment["XDG_CONFIG_HOME"] ?? environment["HOME"].map { "\($0)/.config" }
        let usual = [home.map { "\($0)/gencluster/config.json5" }, "/etc/gencluster/config.json5"].compactMap(\.self)
        guard let path = usual.first(where: { FileManager.default.fileExists(atPath: $0) }) else { return nil }
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
        let content: [UInt8]
        do throws(BoundedFile.Failure) {
            content = try BoundedFile.read(path, limit: Self.sizeLimit)
        } catch {
            switch error {
            case .unreadable(let why): throw ConfigurationError("the configuration \(path) cannot be read: \(why)")
            case .tooLarge: throw Self.tooLarge(path)
            }
        }
        try self.init(path: path, data: Data(content))
        try SettingsReader(self).allow(Self.sections)
    }

    init(path: String, data: Data) throws(ConfigurationError) {
        guard data.count <= Self.sizeLimit else { throw Self.tooLarge(path) }
        let decoder = JSONDecoder()
        decoder.allowsJSON5 = true
        do {
            let value = try decoder.decode(DecodedValue.self, from: data).value
            guard let object = value.object else {
                throw ConfigurationError("the configuration \(path) is \(value.kindName), not an object")
            }
            self.path = path
            root = object
        } catch let error as ConfigurationError {
            throw error
        } catch let DecodingError.dataCorrupted(context) {
            let detail = context.underlyingError.map { "\($0)" } ?? context.debugDescription
            throw ConfigurationError("the configuration \(path) is not JSON5: \(detail.prefix(300))")
        } catch { throw ConfigurationError("the configuration \(path) cannot be read: \(error)") }
    }
}

/// Any JSON value, by way of the toolchain's decoder: settings may be written in JSON5, with comments.
private struct DecodedValue: Decodable {
    let value: JSONValue

    init(from decoder: any Decoder) throws {
        if let container = try? decoder.container(keyedBy: AnyKey.self) {  // Each try? asks: is it of this type?
            var object = JSONObject()
            for key in container.allKeys {
                object[key.stringValue] = try container.decode(DecodedValue.self, forKey: key).value
            }
            value = .object(object)
            return
        }
        if var container = try? decoder.unkeyedContainer() {
            var elements: [JSONValue] = []
            while !container.isAtEnd { elements.append(try container.decode(DecodedValue.self).value) }
            value = .array(elements)
            return
        }
        let container = try decoder.singleValueContainer()
        if container.decodeNil() {
            value = .null
        } else if let bool = try? container.decode(Bool.self) {
            value = .bool(bool)
        } else if let integer = try? container.decode(Int64.self) {
            value = .integer(integer)
        } else if let number = try? container.decode(Double.self) {
            value = .number(number)
        } else {
            value = .string(try container.decode(String.self))
        }
    }

    private struct AnyKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}
