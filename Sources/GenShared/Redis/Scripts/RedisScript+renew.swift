extension RedisScript {
    /// Renews the lease of a running attempt that has nothing to say.
    ///
    /// ARGV: 2 owner, 3 lease (ms).
    ///
    /// Replies: `ok <cancel wanted>`; `fenced <state>`.
    static let renew = RedisScript(
        name: "renew",
        body: ScriptPrelude.text
            + """
            local state, owner = unpack(redis.call('HMGET', record, 'state', 'owner'))
            if state ~= 'running' or owner ~= ARGV[2] then return { 'fenced', state or 'missing' } end
            redis.call('HSET', record, 'lease_until', integer(now() + ARGV[3]))
            return { 'ok', redis.call('EXISTS', flag) }
            """)
}
