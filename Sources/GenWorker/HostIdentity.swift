import GenShared
import Glibc

/// Who this worker is: the name under which it shows in events, records and connections.
struct HostIdentity: Sendable {
    let host: String
    let pid: Int32
    /// Host, process and a random end: unique also where containers share names and process ids.
    let workerID: String

    static let current: HostIdentity = {
        var buffer = [CChar](repeating: 0, count: 256)
        let result = gethostname(&buffer, buffer.count - 1)
        let name =
            result == 0 ? String(decoding: buffer.prefix { $0 != 0 }.map(UInt8.init(bitPattern:)), as: UTF8.self) : ""
        let allowed = name.filter { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-" || $0 == ".") }
        let host = allowed.isEmpty ? "host" : String(allowed.prefix(40))
        let random = String(UInt32.random(in: 0..<(1 << 20)), radix: 32)
        return HostIdentity(host: host, pid: getpid(), workerID: "\(host)-\(getpid())-\(random)")
    }()
}
