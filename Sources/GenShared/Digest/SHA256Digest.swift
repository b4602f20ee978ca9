import COpenSSL

/// The SHA-256 digest of some bytes, by OpenSSL.
package struct SHA256Digest: Hashable, Sendable, CustomStringConvertible {
    /// OpenSSL refused to compute it, as where its configuration leaves the algorithm out.
    package struct Unavailable: Error, CustomStringConvertible {
        package let description = "OpenSSL cannot compute SHA-256 on this machine: look at its openssl.cnf"
    }

    /// 64 lower-case hexadecimal digits.
    package let description: String

    package init(of bytes: [UInt8]) throws(Unavailable) {
        var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
        var count: UInt32 = 0
        guard EVP_Digest(bytes, bytes.count, &digest, &count, EVP_sha256(), nil) == 1 else { throw Unavailable() }
        let digits = Array("0123456789abcdef".utf8)
        let hex = digest.prefix(Int(count)).flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }
        description = String(decoding: hex, as: UTF8.self)
    }
}
