/// What is wrong with a URL, without repeating what may be a secret in it.
public struct URLRejection: Error, Sendable, Equatable, CustomStringConvertible {
    /// One line for a person.
    public let description: String
}

/// The parts of `scheme://user:password@host:port,host:port/path`, with percent signs decoded.
struct ServerURL {
    /// One host of the list; `port` is `nil` where the list names none.
    typealias Place = (host: String, port: Int?)

    var scheme: String
    var user: String?
    var password: String?
    /// At least one, in the order in which they were written.
    private(set) var places: [Place] = []
    /// What follows the first slash, percent signs decoded; `nil` where there is no slash.
    var path: String?

    init(_ text: String, variable: String, schemes: [String], example: String) throws(URLRejection) {
        do throws(Wrong) { try self.init(text, schemes) } catch {
            throw URLRejection(description: "\(variable): \(error.reason); expected something like \(example)")
        }
    }

    /// What is wrong, without the name of the setting.
    private struct Wrong: Error {
        let reason: String
        init(_ reason: String) { self.reason = reason }
    }

    private init(_ text: String, _ schemes: [String]) throws(Wrong) {
        guard let mark = text.firstRange(of: "://") else { throw Wrong("there is no scheme") }
        scheme = text[..<mark.lowerBound].lowercased()
        guard schemes.contains(scheme) else {
            let shown = scheme.utf8.count <= 12 && scheme.allSatisfy(\.isLetter) ? "\"\(scheme)\"" : "the scheme"
            throw Wrong("\(shown) is not one of \(schemes.joined(separator: ", "))")
        }
        let rest = text[mark.upperBound...]
        guard !rest.contains("#"), !rest.contains("?") else {
            throw Wrong("? and # are not understood; write them as %3F and %23 in a password")
        }
        let slash = rest.firstIndex(of: "/")
        let authority = rest[..<(slash ?? rest.endIndex)]
        if let slash {
            guard let decoded = Self.decode(rest[rest.index(after: slash)...]) else {
                throw Wrong("the path has a broken percent escape")
            }
            path = decoded
        }
        var list = authority
        if let at = authority.lastIndex(of: "@") {
            list = authority[authority.index(after: at)...]
            try readCredentials(authority[..<at])
        }
        try readPlaces(list)
    }

    private mutating func readCredentials(_ text: Substring) throws(Wrong) {
        // user:password@host,user:password@host would be read as one long password that names a host.
        guard !text.contains("@") || !text.contains(",") else {
            throw Wrong("user and password stand once, before all hosts; write @ in a password as %40")
        }
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        guard let user = Self.decode(parts[0]) else { throw Wrong("the user has a broken percent escape") }
        self.user = user.isEmpty ? nil : user
        guard parts.count == 2 else { return }
        guard let password = Self.decode(parts[1]) else { throw Wrong("the password has a broken percent escape") }
        self.password = password
    }

    private mutating func readPlaces(_ list: Substring) throws(Wrong) {
        let entries = list.split(separator: ",", omittingEmptySubsequences: false)
        guard entries.count <= 32 else { throw Wrong("there are \(entries.count) hosts, 32 are allowed") }
        for (index, entry) in entries.enumerated() {
            // Only a list needs to say which of its hosts is meant.
            let which = entries.count == 1 ? "" : " of host \(index + 1)"
            guard !entry.isEmpty || entries.count == 1 else {
                throw Wrong("host \(index + 1) of \(entries.count) is empty")
            }
            places.append(try Self.place(entry, which))
        }
    }

    private static func place(_ text: Substring, _ which: String) throws(Wrong) -> Place {
        let host: Substring
        let portText: Substring?
        if text.first == "[" {
            guard let end = text.firstIndex(of: "]") else { throw Wrong("the address\(which) has no closing ]") }
            host = text[text.index(after: text.startIndex)..<end]
            let after = text[text.index(after: end)...]
            guard after.isEmpty || after.first == ":" else {
                throw Wrong("something follows the ] of the address\(which)")
            }
            guard host.contains(":"), host.allSatisfy({ $0.isASCII && $0.isHexDigit || $0 == ":" || $0 == "." }) else {
                throw Wrong("what stands in the brackets\(which) is no IPv6 address")
            }
            portText = after.isEmpty ? nil : after.dropFirst()
        } else {
            let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            host = parts[0]
            portText = parts.count == 2 ? parts[1] : nil
            // Names and addresses have no other characters; the C libraries would stop at NUL, a terminal obey ESC.
            guard !host.isEmpty, host.allSatisfy({ $0.isASCII && ($0.isLetter || $0.isNumber || "-._".contains($0)) })
            else { throw Wrong("the name\(which.isEmpty ? " of the host" : which) is missing or not written in ASCII") }
        }
        // A name of the DNS has 253 characters at most.
        guard host.utf8.count <= 253 else { throw Wrong("the name\(which) has more than 253 characters") }
        guard let portText else { return (String(host), nil) }
        guard portText.utf8.count <= 5, portText.allSatisfy({ ("0"..."9").contains($0) }), let port = Int(portText),
            (1...65535).contains(port)
        else { throw Wrong("the port\(which) must be a number from 1 to 65535") }
        return (String(host), port)
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
