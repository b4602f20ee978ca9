/// Reads the members of an object with their types and bounds checked, and names the place in every error.
///
/// A member that is missing and one that is `null` are the same: not given.
package struct JSONFields {
    let object: JSONObject
    private let path: String

    init(_ object: JSONObject, path: String = "") {
        self.object = object
        self.path = path
    }

    func place(_ key: String) -> String { path.isEmpty ? key : "\(path).\(key)" }

    func string(_ key: String, bytes: ClosedRange<Int>? = nil) throws(JobRejection) -> String? {
        guard let value = given(key) else { return nil }
        guard let string = value.string else { throw wrongType(key, value, "a string") }
        if let bytes, !bytes.contains(string.utf8.count) {
            throw JobRejection(
                .invalidInput, field: place(key),
                reason: "must have \(bytes.lowerBound) to \(bytes.upperBound) bytes")
        }
        return string
    }

    func integer(_ key: String) throws(JobRejection) -> Int? {
        guard let value = given(key) else { return nil }
        guard let integer = value.integer else { throw wrongType(key, value, "a whole number") }
        return Int(integer)
    }

    func integer(_ key: String, in range: ClosedRange<Int>) throws(JobRejection) -> Int? {
        guard let integer = try integer(key) else { return nil }
        guard range.contains(integer) else {
            throw JobRejection(
                .invalidInput, field: place(key),
                reason: "is \(integer), must be \(range.lowerBound) to \(range.upperBound)")
        }
        return integer
    }

    func number(_ key: String, in range: ClosedRange<Double>) throws(JobRejection) -> Double? {
        guard let value = given(key) else { return nil }
        guard let number = value.number else { throw wrongType(key, value, "a number") }
        guard range.contains(number) else {
            throw JobRejection(
                .invalidInput, field: place(key),
                reason: "is \(value.serialized), must be \(range.lowerBound) to \(range.upperBound)")
        }
        return number
    }

    func bool(_ key: String) throws(JobRejection) -> Bool? {
        guard let value = given(key) else { return nil }
        guard let bool = value.bool else { throw wrongType(key, value, "true or false") }
        return bool
    }

    func array(_ key: String) throws(JobRejection) -> [JSONValue]? {
        guard let value = given(key) else { return nil }
        guard let array = value.array else { throw wrongType(key, value, "an array") }
        return array
    }

    func fields(_ key: String) throws(JobRejection) -> JSONFields? {
        guard let value = given(key) else { return nil }
        guard let object = value.object else { throw wrongType(key, value, "an object") }
        return JSONFields(object, path: place(key))
    }

    func timestamp(_ key: String) throws(JobRejection) -> Timestamp? {
        guard let text = try string(key) else { return nil }
        guard let timestamp = Timestamp(text) else {
            throw JobRejection(
                .invalidInput, field: place(key), reason: "is no time such as 2026-11-30T12:00:00.000Z")
        }
        return timestamp
    }

    private func given(_ key: String) -> JSONValue? {
        guard let value = object[key], value != .null else { return nil }
        return value
    }

    private func wrongType(_ key: String, _ value: JSONValue, _ wanted: String) -> JobRejection {
        JobRejection(.malformed, field: place(key), reason: "is \(value.kindName), must be \(wanted)")
    }
}
