import Synchronization

/// The first of several answers, for the one that waits for it.
final class Finish<Value: Sendable>: Sendable {
    private enum State {
        case open
        case waiting(CheckedContinuation<Value, Never>)
        case told(Value)
        case done
    }

    private let state = Mutex(State.open)

    func tell(_ value: Value) {
        let waiter: CheckedContinuation<Value, Never>? = state.withLock { state in
            switch state {
            case .open: state = .told(value)
            case .waiting(let continuation):
                state = .done
                return continuation
            case .told, .done: break
            }
            return nil
        }
        waiter?.resume(returning: value)
    }

    func value() async -> Value {
        await withCheckedContinuation { continuation in
            let value: Value? = state.withLock { state in
                if case .told(let value) = state {
                    state = .done
                    return value
                }
                state = .waiting(continuation)
                return nil
            }
            if let value { continuation.resume(returning: value) }
        }
    }
}
