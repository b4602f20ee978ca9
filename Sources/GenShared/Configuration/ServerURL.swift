/// What is wrong with a URL, without repeating what may be a secret in it.
public struct URLRejection: Error, Sendable, Equatable, CustomStringConvertible {
    /// One line for a person.
    public let description: String
}

/// The parts of `scheme://user:password@host:port/path`, with percent signs decoded.
struct ServerURL {
    var scheme: String
    var user: String?
    var password: String?
    var host: String
    var port: Int?
    /// What follows the first slash, percent signs decoded; `nil` where there is no slash.
    var path: String?

    init(_ text: String, variable: String, schemes: [String], example: String) throws(URLRejection) {
        func wrong(_ reason: String) -> URLRejection {
            URLRejection(description: "\(variable): \(reason); expected something like \(example)")
        }
        guard let mark = text.firstRange(of: "://") else { throw wrong("there is no scheme") }
        scheme = text[..<mark.lowerBound].lowercased()
        guard schemes.contains(scheme) else {
            let shown = scheme.utf8.count <= 12 && scheme.allSatisfy(\.isLetter) ? "\"\(scheme)\"" : "the scheme"
            throw wrong("\(shown) is not one of \(schemes.joined(separator: ", "))")
        }
        let rest = text[mark.upperBound...]
        guard !rest.contains("#"), !rest.contains("?") else {
            throw wrong("? and # are not understood; write them as %3F and %23 in a password")
        }
        let slash = rest.firstIndex(of: "/")
        let authority = rest[..<(slash ?? rest.endIndex)]
        if let slash {
            guard let decoded = Self.decode(rest[rest.index(after: slash)...]) else {
                throw wrong("the path has a broken percent escape")
            }
            path = decoded
        }
        var place = authority
        if let at = authority.lastIndex(of: "@") {
            place = authority[authority.index(after: at)...]
            let credentials = authority[..<at].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            guard let user = Self.decode(credentials[0]) else { throw wrong("the user has a broken percent escape") }
            self.user = user.isEmpty ? nil : user
            if credentials.count == 2 {
                guard let password = Self.decode(credentials[1]) else {
                    throw wrong("the password has a broken percent escape")
                }
                self.password = password
            }
        }
        let portText: Substring?
        if place.first == "[" {
            guard let end = place.firstIndex(of: "]") else { throw wrong("the address has no closing ]") }
            host = String(place[place.index(after: place.startIndex)..<end])
            let after = place[place.index(after: end)...]
            guard after.isEmpty || after.first == ":" else { throw wrong("something follows the ] of the address") }
            portText = after.isEmpty ? nil : after.dropFirst()
        } else {
            let parts = place.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            host = String(parts[0])
            portText = parts.count == 2 ? parts[1] : nil
        }
        guard !host.isEmpty, host.allSatisfy({ $0.isASCII && !$0.isWhitespace && $0 != "%" }) else {
            throw wrong("the host is missing or not written in ASCII")
        }
        if let portText {
            guard portText.allSatisfy({ ("0"..."9").contains($0) }), let port = Int(portText),
                (1...65535).contains(port)
            else { throw wrong("the port must be a number from 1 to 65535") }
            self.port = port
        }
    }

    /// `host:port` for messages.
    static func place(_ host: String, _ port: Int) -> String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }

    /// - Returns: `nil` for a broken escape, bytes that are not UTF-8, or NUL.
    private static func decode(_ text: Substring) -> String? {
        var bytes: [UInt8] = []
        var rest = text.utf8[...]
        while let byte = rest.popFirst() {
            guard byte == UInt8(ascii: "%") else {
                bytes.append(byte)
                continue
            }
            guard let high = rest.popFirst(), let low = rest.popFirst(),
                let value = UInt8(String(decoding: [high, low], as: UTF8.self), radix: 16),
                high != UInt8(ascii: "+"), high != UInt8(ascii: "-")
            else { return nil }
            bytes.append(value)
        }
        guard !bytes.contains(0) else { return nil }
        return String(validating: bytes, as: UTF8.self)
    }
}
