import Foundation
import Glibc
import Synchronization

/// A TCP proxy on 127.0.0.1 that harms what passes through it, as a test says and when it says so.
///
/// One thread carries all connections. A change holds for those that are open and for those that come.
package final class FaultProxy: Sendable {
    /// Which way bytes go.
    package enum Direction: Int, Sendable, CaseIterable {
        case toServer
        case toClient
    }

    /// What happens to bytes of one direction.
    package enum Mode: Sendable, Equatable {
        /// They go on at once.
        case pass
        /// They go on that much later.
        case delay(Duration)
        /// They are not read any more: the sender's buffers fill.
        case blackhole
        /// They are read and thrown away: the sender notices nothing.
        case discard
        /// That many in a second.
        case throttle(bytesPerSecond: Int)
        /// Each byte is a packet of its own.
        case oneByteAtATime
    }

    /// How a connection ends.
    package enum End: Sendable, Equatable {
        /// Both sides see an orderly end.
        case close
        /// Both sides see a reset.
        case reset
        /// The receiver of that direction sees an end; the other direction goes on.
        case halfClose
    }

    /// Ends connections when so many bytes of a direction have passed on one.
    package struct Cut: Sendable {
        package var direction: Direction
        package var bytes: Int
        package var end: End
        /// How many connections it ends.
        package var times: Int

        package init(_ direction: Direction, after bytes: Int, _ end: End = .reset, times: Int = 1) {
            self.direction = direction
            self.bytes = bytes
            self.end = end
            self.times = times
        }
    }

    /// What the thread is told, and what it tells.
    struct Control: Sendable {
        var modes: [Mode] = [.pass, .pass]
        var cuts: [Cut] = []
        var endAll: End?
        var refuses = false
        var target: Int
        var isClosed = false
        var bytes = [0, 0]
        var connections = 0
        var open = 0
    }

    /// Where it listens.
    package let port: Int
    let control: Mutex<Control>
    private let wake: Int32

    /// Listens on a free port, for a server on that port of 127.0.0.1.
    package init(to target: Int) throws {
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = FaultSocket.loopback(port: 0)
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let port = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { generic in
                guard bind(listener, generic, length) == 0, listen(listener, 512) == 0,
                    getsockname(listener, generic, &length) == 0
                else { return -1 }
                return Int(UInt16(bigEndian: pointer.pointee.sin_port))
            }
        }
        var ends: [Int32] = [-1, -1]
        guard port > 0, pipe(&ends) == 0 else { throw FaultError("the proxy found no port to listen on") }
        for descriptor in ends + [listener] {
            _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
            _ = fcntl(descriptor, F_SETFL, O_NONBLOCK)
        }
        self.port = port
        wake = ends[1]
        control = Mutex(Control(target: target))
        let thread = FaultProxyThread(listener: listener, wake: ends[0])
        // Weak: the proxy ends its thread when it goes.
        Thread.detachNewThread { [weak self] in thread.run { self } }
    }

    deinit {
        // The thread finds the other end of the pipe closed and ends.
        close(wake)
    }

    /// Harms one direction from now on.
    package func set(_ mode: Mode, _ direction: Direction) {
        change { $0.modes[direction.rawValue] = mode }
    }

    /// Harms both directions from now on.
    package func set(_ mode: Mode) { change { $0.modes = [mode, mode] } }

    /// Ends the next connections that come to so many bytes.
    package func cut(_ cut: Cut) { change { $0.cuts.append(cut) } }

    /// Cuts that have not happened yet.
    package var waitingCuts: Int { control.withLock { $0.cuts.count } }

    /// Ends all open connections now.
    package func end(_ end: End) { change { $0.endAll = end } }

    /// Whether new connections are ended at once.
    package func refuse(_ refuses: Bool) { change { $0.refuses = refuses } }

    /// Passes everything again, and forgets cuts that have not happened.
    package func heal() {
        change { control in
            control.modes = [.pass, .pass]
            control.cuts = []
            control.refuses = false
        }
    }

    /// Bytes that went that way so far.
    package func bytes(_ direction: Direction) -> Int { control.withLock { $0.bytes[direction.rawValue] } }

    /// Connections that were made so far.
    package var connections: Int { control.withLock { $0.connections } }

    /// Connections that are open.
    package var open: Int { control.withLock { $0.open } }

    private func change(_ body: (inout Control) -> Void) {
        control.withLock { body(&$0) }
        var byte: UInt8 = 0
        // A full pipe has woken the thread already.
        _ = write(wake, &byte, 1)
    }
}

/// Something that a fault test needs is not there, or does not do what it must.
package struct FaultError: Error, CustomStringConvertible {
    package let description: String

    package init(_ description: String) { self.description = description }
}
