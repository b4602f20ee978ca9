import Synchronization

/// One timer for the deadlines of many: it sleeps until the earliest of them.
///
/// Nearly all that is set is cleared before its time, so setting must be cheap: a task that sleeps for each would cost
/// more than what it guards.
package final class Alarm: Sendable {
    /// Called at its time; answers when to be called again, `nil` for never.
    ///
    /// Must not block, nor touch the alarm.
    typealias Ring = @Sendable (_ now: ContinuousClock.Instant) -> ContinuousClock.Instant?

    private struct Entry {
        var time: ContinuousClock.Instant
        let ring: Ring
    }

    private struct State {
        var entries: [UInt64: Entry] = [:]
        var lastNumber: UInt64 = 0
        var sleeper: Task<Void, Never>?
        /// When the sleeper wakes; `nil` where there is none.
        var wakesAt: ContinuousClock.Instant?
        /// Which sleeper is the present one: another may wake before it hears that it was cancelled.
        var generation: UInt64 = 0
    }

    private let scheduler: any Scheduler
    private let state = Mutex(State())

    package init(on scheduler: any Scheduler) { self.scheduler = scheduler }

    /// - Returns: a number to clear it by.
    func set(at time: ContinuousClock.Instant, _ ring: @escaping Ring) -> UInt64 {
        state.withLock { state in
            state.lastNumber += 1
            state.entries[state.lastNumber] = Entry(time: time, ring: ring)
            if state.wakesAt.map({ time < $0 }) ?? true { sleep(until: time, &state) }
            return state.lastNumber
        }
    }

    func clear(_ number: UInt64) {
        state.withLock { state in
            state.entries[number] = nil
            // The next one starts another sleeper; this one must not keep anybody waiting.
            guard state.entries.isEmpty else { return }
            state.sleeper?.cancel()
            (state.sleeper, state.wakesAt) = (nil, nil)
            state.generation += 1
        }
    }

    private func sleep(until time: ContinuousClock.Instant, _ state: inout State) {
        state.sleeper?.cancel()
        state.wakesAt = time
        state.generation += 1
        state.sleeper = scheduler.start { [scheduler, generation = state.generation] in
            var next: ContinuousClock.Instant? = time
            while let time = next {
                // Cancelled: another sleeper has taken over, or nobody needs one.
                do { try await scheduler.sleep(for: max(.zero, time - scheduler.now)) } catch { return }
                next = self.ring(generation)
            }
        }
    }

    /// Rings all whose time has come.
    /// - Returns: when to wake again.
    private func ring(_ generation: UInt64) -> ContinuousClock.Instant? {
        let now = scheduler.now
        return state.withLock { state in
            guard state.generation == generation else { return nil }
            // All are looked at, but seldom: with like deadlines once in the time that one takes.
            for (number, entry) in state.entries where entry.time <= now {
                if let again = entry.ring(now) {
                    state.entries[number]?.time = again
                } else {
                    state.entries[number] = nil
                }
            }
            state.wakesAt = state.entries.values.map(\.time).min()
            return state.wakesAt
        }
    }
}
