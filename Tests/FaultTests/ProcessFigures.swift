import Foundation
import GenTestSupport

/// What a process holds: to see that it holds no more after a fault than before.
struct ProcessFigures: CustomStringConvertible {
    let residentKilobytes: Int
    let threads: Int
    let descriptors: Int

    init(_ process: Int32) throws {
        let status = try String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)
        func field(_ name: String) throws -> Int {
            let line = status.split(separator: "\n").first { $0.hasPrefix("\(name):") }
            guard let value = line?.split(whereSeparator: \.isWhitespace).dropFirst().first.flatMap({ Int($0) }) else {
                throw FaultError("/proc/\(process)/status has no \(name)")
            }
            return value
        }
        residentKilobytes = try field("VmRSS")
        threads = try field("Threads")
        descriptors = try FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd").count
    }

    var description: String { "\(residentKilobytes) kB, \(threads) threads, \(descriptors) descriptors" }
}
