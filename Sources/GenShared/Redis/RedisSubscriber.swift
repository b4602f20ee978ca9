import Glibc
import Synchronization

/// One connection for all subscriptions of a process, on a thread of its own; heals itself.
package actor RedisSubscriber: ChannelSource {
    package typealias Listener = @Sendable (ChannelSignal) -> Void

    private enum Request: Sendable {
        case add(channel: String, number: Int, listener: Listener)
        case remove(channel: String, number: Int)
    }

    private struct Channel {
        var listeners: [Int: Listener] = [:]
        var isConfirmed = false
    }

    private nonisolated let executor: PinnedExecutor
    private nonisolated let mailbox = Mailbox<Request>()
    private nonisolated let numbers = Atomic(0)
    private let url: RedisURL
    private let name: String
    private let timeouts: RedisTimeouts
    private let clock = ContinuousClock()

    private var channels: [String: Channel] = [:]
    private var handle: RedisHandle?
    private var isFlushed = true
    private var retryAt: ContinuousClock.Instant?
    private var backoff = Backoff(first: .milliseconds(50), limit: .seconds(2))
    /// What was logged last: the same is not told again until it was well in between.
    private var lastTold: String?
    private var heardAt: ContinuousClock.Instant
    private var pingedAt: ContinuousClock.Instant?

    /// Silence after which Redis is asked whether it is still there: a half-open socket says nothing.
    private static let silence: Duration = .seconds(10)

    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    package init(url: RedisURL, name: String, timeouts: RedisTimeouts = RedisTimeouts()) {
        self.url = url
        self.name = name
        self.timeouts = timeouts
        heardAt = clock.now
        executor = PinnedExecutor(name: "redis-sub")
        executor.poll(self)
    }

    /// Listens to a channel.
    ///
    /// The listener is called on the subscriber's thread and must not block.
    package nonisolated func subscribe(_ channel: String, _ listener: @escaping Listener) -> ChannelSubscription {
        let number = numbers.add(1, ordering: .relaxed).newValue
        guard mailbox.post(.add(channel: channel, number: number, listener: listener)) else {
            listener(.lost("the subscriber is closed"))
            return ChannelSubscription {}
        }
        executor.wake()
        // Weak: a subscription must not keep a closed subscriber's thread alive.
        return ChannelSubscription { [weak self] in
            guard let self, mailbox.post(.remove(channel: channel, number: number)) else { return }
            executor.wake()
        }
    }

    /// Ends all subscriptions; listeners hear `lost` once more.
    package func close() {
        handle = nil
        _ = mailbox.close()
        tellAll(.lost("the subscriber is closed"))
        channels = [:]
    }
}

// MARK: - The thread's turn

extension RedisSubscriber: PollSource {
    package nonisolated func service() { assumeIsolated { $0.turn() } }
    package nonisolated var hasWork: Bool { !mailbox.isEmpty }

    package nonisolated func wait(wake: Int32) {
        let (descriptor, events, timeout) = assumeIsolated { subscriber in
            (
                subscriber.handle?.descriptor ?? -1, subscriber.isFlushed ? POLLIN : POLLIN | POLLOUT,
                subscriber.nextTimeout()
            )
        }
        pollDescriptor(descriptor, events: events, wake: wake, timeoutMilliseconds: timeout)
    }

    private func turn() {
        do throws(RedisError) {
            for request in mailbox.takeAll() { try apply(request) }
            if handle == nil { try reconnect() }
            guard let handle else { return }
            if !isFlushed { isFlushed = try handle.flush() }
            try handle.fill()
            while let reply = try handle.nextReply() { try receive(reply) }
            try checkSilence(handle)
        } catch {
            lose(error)
        }
    }

    private func apply(_ request: Request) throws(RedisError) {
        switch request {
        case .add(let name, let number, let listener):
            var channel = channels[name] ?? Channel()
            let isNew = channel.listeners.isEmpty
            channel.listeners[number] = listener
            channels[name] = channel
            if isNew {
                try transmit("SUBSCRIBE", name)
            } else if channel.isConfirmed {
                listener(.subscribed)
            }
        case .remove(let name, let number):
            channels[name]?.listeners[number] = nil
            if channels[name]?.listeners.isEmpty == true {
                channels[name] = nil
                try transmit("UNSUBSCRIBE", name)
            }
        }
    }

    private func transmit(_ word: String, _ channel: String) throws(RedisError) {
        guard let handle else { return }
        try handle.append(RedisCommand(word, channel))
        isFlushed = false
    }

    private func reconnect() throws(RedisError) {
        if channels.isEmpty { return }
        if let retryAt, clock.now < retryAt { return }
        let fresh = try RedisSession.open(url: url, name: name, timeouts: timeouts)
        handle = fresh
        retryAt = nil
        heardAt = clock.now
        pingedAt = nil
        for name in channels.keys { try transmit("SUBSCRIBE", name) }
    }

    private func receive(_ reply: RedisReply) throws(RedisError) {
        heardAt = clock.now
        pingedAt = nil
        if case .error(let text) = reply { throw RedisError(.connectionLost, "Redis: \(text)") }
        guard let parts = reply.array, parts.count >= 3, let channel = parts[1].string else { return }
        switch parts[0].string {
        case "message":
            guard let listeners = channels[channel]?.listeners, let text = parts[2].string else { return }
            for listener in listeners.values { listener(.message(text)) }
        case "subscribe":
            // Only now it is good: a server that accepts and then refuses is not to be asked twenty times a second.
            backoff.reset()
            lastTold = nil
            channels[channel]?.isConfirmed = true
            for listener in channels[channel]?.listeners.values ?? [:].values { listener(.subscribed) }
        default: break
        }
    }

    private func checkSilence(_ handle: RedisHandle) throws(RedisError) {
        let now = clock.now
        if let pingedAt {
            guard now - pingedAt < timeouts.command else {
                throw RedisError(.connectionLost, "Redis at \(url.place) has gone silent")
            }
        } else if now - heardAt > Self.silence, !channels.isEmpty {
            try handle.append(RedisCommand("PING"))
            isFlushed = try handle.flush()
            pingedAt = now
        }
    }

    private func lose(_ error: RedisError) {
        handle = nil
        isFlushed = true
        retryAt = clock.now + backoff.next()
        if error.message != lastTold {
            lastTold = error.message
            Log.warning("subscriber_lost", ["reason": .string(error.message)])
        }
        for name in channels.keys { channels[name]?.isConfirmed = false }
        tellAll(.lost(error.message))
    }

    private func tellAll(_ signal: ChannelSignal) {
        for channel in channels.values {
            for listener in channel.listeners.values { listener(signal) }
        }
    }

    private func nextTimeout() -> Int32 {
        if handle == nil {
            guard !channels.isEmpty, let retryAt else { return channels.isEmpty ? -1 : 0 }
            return Int32(clamping: (retryAt - clock.now).milliseconds + 1)
        }
        guard !channels.isEmpty else { return -1 }
        let deadline = pingedAt.map { $0 + timeouts.command } ?? heardAt + Self.silence
        return Int32(clamping: (deadline - clock.now).milliseconds + 1)
    }
}
