/// A JSON value as it stands in a message, an event or a backend's reply.
///
/// Integers that fit 64 bits are kept apart from other numbers, so that a seed or a token count is never rounded.
public enum JSONValue: Sendable, Equatable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number without fraction and exponent that fits 64 bits.
    case integer(Int64)
    /// Any other finite number.
    case number(Double)
    /// Text, already unescaped.
    case string(String)
    /// A list.
    case array([JSONValue])
    /// A set of named members, in the order in which they were written.
    case object(JSONObject)

    /// The text, or `nil` for anything but a string.
    public var string: String? {
        if case .string(let value) = self { value } else { nil }
    }

    /// The truth value, or `nil` for anything but a boolean.
    public var bool: Bool? {
        if case .bool(let value) = self { value } else { nil }
    }

    /// The integer, or `nil` for anything else; `3.0` counts as 3.
    public var integer: Int64? {
        switch self {
        case .integer(let value): value
        case .number(let value): Int64(exactly: value)
        default: nil
        }
    }

    /// The number as a double, or `nil` for anything but a number.
    public var number: Double? {
        switch self {
        case .integer(let value): Double(value)
        case .number(let value): value
        default: nil
        }
    }

    /// The list, or `nil` for anything but an array.
    public var array: [JSONValue]? {
        if case .array(let value) = self { value } else { nil }
    }

    /// The members, or `nil` for anything but an object.
    public var object: JSONObject? {
        if case .object(let value) = self { value } else { nil }
    }

    /// The member of that name, or `nil` where this is no object or has none.
    public subscript(key: String) -> JSONValue? {
        object?[key]
    }

    /// What kind of value this is, in the words of an error message.
    public var kindName: String {
        switch self {
        case .null: "null"
        case .bool: "a boolean"
        case .integer, .number: "a number"
        case .string: "a string"
        case .array: "an array"
        case .object: "an object"
        }
    }
}

/// The members of a JSON object, in the order in which they were written.
///
/// Look-up is linear: the objects of our contracts have a dozen members at most, where an array beats a hash table.
public struct JSONObject: Sendable, Equatable, ExpressibleByDictionaryLiteral {
    /// One name and its value.
    public struct Member: Sendable, Equatable {
        /// The name.
        public var key: String
        /// The value.
        public var value: JSONValue
    }

    /// All members.
    public private(set) var members: [Member] = []

    /// An object without members.
    public init() {}

    /// An object with these members; of a name that is given twice the last counts.
    public init(dictionaryLiteral elements: (String, JSONValue)...) {
        for (key, value) in elements { self[key] = value }
    }

    /// The value of that name.
    ///
    /// Setting `nil` removes the member.
    public subscript(key: String) -> JSONValue? {
        get { members.first { $0.key == key }?.value }
        set {
            let place = members.firstIndex { $0.key == key }
            switch (place, newValue) {
            case (let place?, let value?): members[place].value = value
            case (let place?, nil): members.remove(at: place)
            case (nil, let value?): members.append(Member(key: key, value: value))
            case (nil, nil): break
            }
        }
    }

    /// Adds a member whose name the caller knows to be new.
    mutating func append(key: String, value: JSONValue) {
        members.append(Member(key: key, value: value))
    }
}
