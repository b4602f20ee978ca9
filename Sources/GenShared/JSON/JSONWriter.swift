/// Writes JSON into one growing buffer, without building values first: the path of every event and message.
///
/// The caller keeps the order: names and values inside `beginObject` … `endObject`, commas are set here.
public struct JSONWriter {
    /// What has been written so far, in UTF-8.
    public private(set) var bytes: [UInt8] = []
    private var needsComma = false

    /// A writer with room for that many bytes.
    public init(capacity: Int = 256) {
        bytes.reserveCapacity(capacity)
    }

    /// What has been written so far.
    public var text: String { String(decoding: bytes, as: UTF8.self) }

    /// Opens an object.
    public mutating func beginObject() { open(UInt8(ascii: "{")) }
    /// Closes the object that was opened last.
    public mutating func endObject() { close(UInt8(ascii: "}")) }
    /// Opens an array.
    public mutating func beginArray() { open(UInt8(ascii: "[")) }
    /// Closes the array that was opened last.
    public mutating func endArray() { close(UInt8(ascii: "]")) }

    /// A member's name; its value must follow.
    public mutating func key(_ name: String) {
        comma()
        quote(name)
        bytes.append(UInt8(ascii: ":"))
        needsComma = false
    }

    /// A string.
    public mutating func value(_ string: String) {
        comma()
        quote(string)
        needsComma = true
    }

    /// An integer.
    public mutating func value(_ integer: Int64) {
        raw(String(integer))
    }

    /// A number; one that is not finite has no form in JSON and becomes `null`.
    public mutating func value(_ number: Double) {
        if let whole = Int64(exactly: number) {
            raw(String(whole))
        } else {
            raw(number.isFinite ? "\(number)" : "null")
        }
    }

    /// A boolean.
    public mutating func value(_ bool: Bool) {
        raw(bool ? "true" : "false")
    }

    /// A name with a string.
    public mutating func member(_ name: String, _ string: String) {
        key(name)
        value(string)
    }

    /// A name with an integer.
    public mutating func member(_ name: String, _ integer: Int) {
        key(name)
        value(Int64(integer))
    }

    /// A name with a string, or nothing at all for `nil`.
    public mutating func member(_ name: String, ifPresent string: String?) {
        if let string { member(name, string) }
    }

    /// A name with an integer, or nothing at all for `nil`.
    public mutating func member(_ name: String, ifPresent integer: Int?) {
        if let integer { member(name, integer) }
    }

    /// A name with a number, or nothing at all for `nil`.
    public mutating func member(_ name: String, ifPresent number: Double?) {
        guard let number else { return }
        key(name)
        value(number)
    }

    /// A name with a boolean, or nothing at all for `nil`.
    public mutating func member(_ name: String, ifPresent bool: Bool?) {
        guard let bool else { return }
        key(name)
        value(bool)
    }

    /// A name with any JSON value.
    public mutating func member(_ name: String, _ json: JSONValue) {
        key(name)
        value(json)
    }

    /// Any JSON value.
    public mutating func value(_ json: JSONValue) {
        switch json {
        case .null: raw("null")
        case .bool(let bool): value(bool)
        case .integer(let integer): value(integer)
        case .number(let number): value(number)
        case .string(let string): value(string)
        case .array(let elements):
            beginArray()
            for element in elements { value(element) }
            endArray()
        case .object(let object):
            beginObject()
            for member in object.members {
                key(member.key)
                value(member.value)
            }
            endObject()
        }
    }

    /// Text that already is JSON, placed as it stands.
    public mutating func raw(_ json: String) {
        comma()
        bytes.append(contentsOf: json.utf8)
        needsComma = true
    }

    private mutating func open(_ bracket: UInt8) {
        comma()
        bytes.append(bracket)
        needsComma = false
    }

    private mutating func close(_ bracket: UInt8) {
        bytes.append(bracket)
        needsComma = true
    }

    private mutating func comma() {
        if needsComma { bytes.append(UInt8(ascii: ",")) }
    }

    private mutating func quote(_ string: String) {
        bytes.append(UInt8(ascii: "\""))
        for byte in string.utf8 {
            switch byte {
            case UInt8(ascii: "\""): bytes.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: "\"")])
            case UInt8(ascii: "\\"): bytes.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: "\\")])
            case 0x0A: bytes.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: "n")])
            case 0x0D: bytes.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: "r")])
            case 0x09: bytes.append(contentsOf: [UInt8(ascii: "\\"), UInt8(ascii: "t")])
            case 0..<0x20, 0x7F: control(byte)
            default: bytes.append(byte)
            }
        }
        bytes.append(UInt8(ascii: "\""))
    }

    private mutating func control(_ byte: UInt8) {
        let digits = Array("0123456789abcdef".utf8)
        bytes.append(contentsOf: "\\u00".utf8)
        bytes.append(digits[Int(byte >> 4)])
        bytes.append(digits[Int(byte & 15)])
    }
}

extension JSONValue {
    /// This value as JSON text on one line.
    public var serialized: String {
        var writer = JSONWriter()
        writer.value(self)
        return writer.text
    }
}
