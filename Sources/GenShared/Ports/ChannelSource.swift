import Synchronization

/// What a listener to a channel hears.
package enum ChannelSignal: Sendable {
    /// The server has confirmed the subscription: whatever is published from here on will come, until `lost`.
    case subscribed
    /// Somebody published this.
    case message(String)
    /// The connection is gone; `subscribed` follows when it is back. Messages between the two are lost.
    case lost(String)
}

/// Where channels can be listened to.
package protocol ChannelSource: Sendable {
    /// Listens to a channel.
    ///
    /// The listener is called on a thread of the source, and must not block.
    func subscribe(_ channel: String, _ listener: @escaping @Sendable (ChannelSignal) -> Void) -> ChannelSubscription
}

/// One subscribed channel of one listener; ends when it is cancelled or given up.
package final class ChannelSubscription: Sendable {
    private let end: @Sendable () -> Void
    private let isEnded = Atomic(false)

    package init(end: @escaping @Sendable () -> Void) { self.end = end }

    deinit { cancel() }

    /// Ends the subscription; a signal that is under way may still come.
    package func cancel() {
        if !isEnded.exchange(true, ordering: .relaxed) { end() }
    }
}
