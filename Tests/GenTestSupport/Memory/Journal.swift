import Synchronization

/// What happened, in order, from any thread; tests wait until enough has.
package final class Journal<Element: Sendable>: Sendable {
    private struct Waiter {
        let count: Int
        let continuation: CheckedContinuation<Void, Never>
    }

    private struct State {
        var elements: [Element] = []
        var waiters: [UInt64: Waiter] = [:]
        var cancelled: Set<UInt64> = []
        var nextWaiter: UInt64 = 0
    }

    private let state = Mutex(State())

    package init() {}

    package var elements: [Element] { state.withLock { $0.elements } }
    package var count: Int { state.withLock { $0.elements.count } }

    package func append(_ element: Element) {
        let ready = state.withLock { state in
            state.elements.append(element)
            let count = state.elements.count
            let ready = state.waiters.filter { $0.value.count <= count }
            for key in ready.keys { state.waiters[key] = nil }
            return ready.values.map(\.continuation)
        }
        for continuation in ready { continuation.resume() }
    }

    /// Waits until at least that many elements are there, or the test's time is over.
    /// - Returns: the elements.
    @discardableResult
    package func wait(for count: Int) async -> [Element] {
        let number = state.withLock { state in
            state.nextWaiter += 1
            return state.nextWaiter
        }
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isDone = state.withLock { state in
                    if state.elements.count >= count || state.cancelled.contains(number) { return true }
                    state.waiters[number] = Waiter(count: count, continuation: continuation)
                    return false
                }
                if isDone { continuation.resume() }
            }
        } onCancel: {
            let waiter = state.withLock { state in
                state.cancelled.insert(number)
                return state.waiters.removeValue(forKey: number)
            }
            waiter?.continuation.resume()
        }
        return elements
    }
}
