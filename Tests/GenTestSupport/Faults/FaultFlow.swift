import Glibc

/// One direction of one connection of the proxy: what was read and not yet passed on.
struct FaultFlow {
    private struct Piece {
        var due: ContinuousClock.Instant
        var bytes: ArraySlice<UInt8>
    }

    let source: Int32
    let target: Int32
    private(set) var isEnded = false
    private(set) var passed = 0
    private var pieces: [Piece] = []
    private var held = 0
    private var refilled = ContinuousClock.now
    private var allowance = 0.0

    /// More than this is left to the sender's buffer.
    private static let limit = 65_536

    init(source: Int32, target: Int32) {
        self.source = source
        self.target = target
    }

    func wantsToRead(_ mode: FaultProxy.Mode) -> Bool {
        !isEnded && mode != .blackhole && held < Self.limit
    }

    var holdsBytes: Bool { held > 0 }

    /// Whether something may be written now; a time that has to pass first is looked at again a little later.
    func wantsToWrite(_ mode: FaultProxy.Mode, _ now: ContinuousClock.Instant) -> Bool {
        guard let first = pieces.first, mode != .blackhole else { return false }
        if case .throttle(let rate) = mode, allowance + Double(rate) * seconds(now) < 1 { return false }
        return first.due <= now
    }

    /// - Returns: false when the sender has gone with a reset.
    mutating func read(_ mode: FaultProxy.Mode, _ now: ContinuousClock.Instant) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 16_384)
        let count = Glibc.read(source, &buffer, buffer.count)
        if count == 0 { isEnded = true }
        guard count > 0 else { return count == 0 || errno == EAGAIN || errno == EINTR }
        guard mode != .discard else { return true }
        var due = now
        if case .delay(let time) = mode { due += time }
        pieces.append(Piece(due: due, bytes: buffer[..<count]))
        held += count
        return true
    }

    /// Passes on what the mode lets, but not beyond `limit` bytes in all.
    /// - Returns: false when the receiver has gone.
    mutating func write(_ mode: FaultProxy.Mode, limit: Int?, _ now: ContinuousClock.Instant) -> Bool {
        if mode == .discard {
            pieces = []
            held = 0
            return true
        }
        refill(mode, now)
        while let first = pieces.first, first.due <= now {
            var count = first.bytes.count
            if let limit { count = min(count, limit - passed) }
            if case .throttle = mode { count = min(count, Int(allowance)) }
            if mode == .oneByteAtATime { count = min(count, 1) }
            guard count > 0 else { return true }
            let sent = first.bytes.prefix(count).withUnsafeBytes {
                send(target, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { return errno == EAGAIN || errno == EINTR }
            advance(sent)
            if mode == .oneByteAtATime { return true }
        }
        return true
    }

    private mutating func advance(_ count: Int) {
        passed += count
        held -= count
        allowance -= Double(count)
        pieces[0].bytes = pieces[0].bytes.dropFirst(count)
        if pieces[0].bytes.isEmpty { pieces.removeFirst() }
    }

    private mutating func refill(_ mode: FaultProxy.Mode, _ now: ContinuousClock.Instant) {
        defer { refilled = now }
        guard case .throttle(let rate) = mode else { return allowance = 0 }
        // At most a tenth of a second's worth at once.
        allowance = min(max(allowance, 0) + Double(rate) * seconds(now), max(1, Double(rate) / 10))
    }

    private func seconds(_ now: ContinuousClock.Instant) -> Double { (now - refilled) / .seconds(1) }
}
