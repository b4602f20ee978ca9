import Glibc
import Synchronization

/// The proxy's thread: accepts, reads, waits, writes, and ends connections.
final class FaultProxyThread: Sendable {
    private struct Link {
        var flows: [FaultFlow]
        var isDead = false

        var client: Int32 { flows[0].source }
        var server: Int32 { flows[0].target }
    }

    private let listener: Int32
    private let wake: Int32

    init(listener: Int32, wake: Int32) {
        self.listener = listener
        self.wake = wake
    }

    /// Runs until the proxy has gone.
    func run(_ proxy: () -> FaultProxy?) {
        var links: [Link] = []
        defer {
            for link in links { finish(link, .reset) }
            close(listener)
            close(wake)
        }
        while true {
            guard var control = proxy()?.control.withLock({ $0 }) else { return }
            guard waitForWork(links, control) else { return }
            guard let proxy = proxy() else { return }
            control = proxy.control.withLock { control in
                defer { control.endAll = nil }
                return control
            }
            let before = links.map { $0.flows.map(\.passed) }
            if let end = control.endAll { links.indices.forEach { self.end(&links[$0], end, .toServer) } }
            for index in links.indices where !links[index].isDead { carry(&links[index], control, proxy) }
            count(links, before, proxy)
            links.removeAll(where: \.isDead)
            let accepted = accept(control)
            links += accepted.links
            proxy.control.withLock { control in
                control.connections += accepted.count
                control.open = links.count
            }
        }
    }

    private func count(_ links: [Link], _ before: [[Int]], _ proxy: FaultProxy) {
        proxy.control.withLock { control in
            for (link, old) in zip(links, before) {
                for index in 0..<2 { control.bytes[index] += link.flows[index].passed - old[index] }
            }
        }
    }

    // MARK: Waiting

    /// - Returns: false when the proxy has gone.
    private func waitForWork(_ links: [Link], _ control: FaultProxy.Control) -> Bool {
        var entries = [
            pollfd(fd: wake, events: Int16(POLLIN), revents: 0),
            pollfd(fd: listener, events: Int16(POLLIN), revents: 0),
        ]
        let now = ContinuousClock.now
        // What waits for its time is looked at every 5 ms.
        var timeout: Int32 = -1
        for link in links {
            for (index, flow) in link.flows.enumerated() {
                let mode = control.modes[index]
                if flow.wantsToRead(mode) { entries.append(pollfd(fd: flow.source, events: Int16(POLLIN), revents: 0)) }
                if flow.wantsToWrite(mode, now) {
                    entries.append(pollfd(fd: flow.target, events: Int16(POLLOUT), revents: 0))
                } else if flow.holdsBytes, mode != .blackhole {
                    timeout = 5
                }
            }
        }
        _ = poll(&entries, nfds_t(entries.count), timeout)
        if entries[0].revents & Int16(POLLHUP) != 0 { return false }
        if entries[0].revents & Int16(POLLIN) != 0 {
            var buffer = [UInt8](repeating: 0, count: 64)
            _ = Glibc.read(wake, &buffer, buffer.count)
        }
        return true
    }

    // MARK: Carrying

    private func carry(_ link: inout Link, _ control: FaultProxy.Control, _ proxy: FaultProxy) {
        for direction in FaultProxy.Direction.allCases where !link.isDead {
            let index = direction.rawValue
            let mode = control.modes[index]
            let now = ContinuousClock.now
            if link.flows[index].wantsToRead(mode), !link.flows[index].read(mode, now) {
                end(&link, .reset, direction)
                return
            }
            let cut = control.cuts.first { $0.direction == direction && $0.times > 0 }
            if mode != .blackhole, !link.flows[index].write(mode, limit: cut?.bytes, now) {
                end(&link, .reset, direction)
                return
            }
            if let cut, link.flows[index].passed >= cut.bytes, take(cut, proxy) {
                end(&link, cut.end, direction)
                continue
            }
            if link.flows[index].isEnded, !link.flows[index].holdsBytes, mode != .blackhole {
                shutdown(link.flows[index].target, Int32(SHUT_WR))
            }
        }
        if link.flows.allSatisfy({ $0.isEnded && !$0.holdsBytes }) { end(&link, .close, .toServer) }
    }

    /// Uses the cut up, unless another connection was quicker.
    private func take(_ cut: FaultProxy.Cut, _ proxy: FaultProxy) -> Bool {
        proxy.control.withLock { control in
            guard
                let index = control.cuts.firstIndex(where: { $0.direction == cut.direction && $0.bytes == cut.bytes })
            else { return false }
            control.cuts[index].times -= 1
            if control.cuts[index].times <= 0 { control.cuts.remove(at: index) }
            return true
        }
    }

    private func end(_ link: inout Link, _ end: FaultProxy.End, _ direction: FaultProxy.Direction) {
        if end == .halfClose {
            shutdown(link.flows[direction.rawValue].target, Int32(SHUT_WR))
            return
        }
        finish(link, end)
        link.isDead = true
    }

    private func finish(_ link: Link, _ end: FaultProxy.End) {
        for descriptor in [link.client, link.server] {
            if end == .reset { FaultSocket.closeWithReset(descriptor) } else { close(descriptor) }
        }
    }

    // MARK: Accepting

    private func accept(_ control: FaultProxy.Control) -> (links: [Link], count: Int) {
        var links: [Link] = []
        var count = 0
        while true {
            let client = Glibc.accept(listener, nil, nil)
            guard client >= 0 else { return (links, count) }
            count += 1
            guard !control.refuses, let server = FaultSocket.connect(to: control.target) else {
                FaultSocket.closeWithReset(client)
                continue
            }
            FaultSocket.prepare(client)
            links.append(
                Link(flows: [
                    FaultFlow(source: client, target: server), FaultFlow(source: server, target: client),
                ]))
        }
    }
}
