extension RedisScript {
    /// Adds events of the running attempt to the log and the channel, and renews the lease.
    ///
    /// ARGV: 2 owner, 3 last event before these, 4 lease (ms), then id and JSON of each event.
    ///
    /// Replies: `ok <cancel wanted>`; `behind <last>` where Redis has lost events that the owner still has; `fenced
    /// <state>` where the lease is another's. Events that are there already are passed over, so the same call may be
    /// repeated.
    static let append = RedisScript(
        name: "append",
        body: ScriptPrelude.text
            + """
            local state, owner, last = unpack(redis.call('HMGET', record, 'state', 'owner', 'last'))
            if state ~= 'running' or owner ~= ARGV[2] then return { 'fenced', state or 'missing' } end
            if precedes(last, ARGV[3]) then return { 'behind', last } end
            local start, known = 5, last == ARGV[3]
            while not known and ARGV[start] do
              known = ARGV[start] == last
              start = start + 2
            end
            if not known then return { 'fenced', state } end
            for i = start, #ARGV, 2 do
              emit(ARGV[i], ARGV[i + 1])
              last = ARGV[i]
            end
            redis.call('HSET', record, 'last', last, 'lease_until', integer(now() + ARGV[4]))
            return { 'ok', redis.call('EXISTS', flag) }
            """)
}
