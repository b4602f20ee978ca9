import Synchronization

/// What any thread leaves for a pinned thread to take in its next turn.
package final class Mailbox<Element: Sendable>: Sendable {
    private struct State {
        var elements: [Element] = []
        var isClosed = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Leaves an element; the caller then wakes the executor.
    /// - Returns: false if the mailbox is closed: nobody will ever take it.
    package func post(_ element: Element) -> Bool {
        state.withLock { state in
            guard !state.isClosed else { return false }
            state.elements.append(element)
            return true
        }
    }

    /// Takes everything that was left, in order.
    package func takeAll() -> [Element] {
        state.withLock { state in
            if state.elements.isEmpty { return [] }
            var taken: [Element] = []
            swap(&taken, &state.elements)
            return taken
        }
    }

    /// Refuses further elements and takes those that are left.
    package func close() -> [Element] {
        state.withLock { state in
            state.isClosed = true
            var taken: [Element] = []
            swap(&taken, &state.elements)
            return taken
        }
    }

    package var isEmpty: Bool { state.withLock { $0.elements.isEmpty } }
}
