extension RedisScript {
    /// Stores what an attempt must know again after a crash, such as a prediction's id at a remote API.
    ///
    /// ARGV: 2 owner, 3 name of the field, 4 value.
    ///
    /// Replies: `ok`; `fenced <state>`.
    static let remember = RedisScript(
        name: "remember",
        body: ScriptPrelude.text
            + """
            local state, owner = unpack(redis.call('HMGET', record, 'state', 'owner'))
            if state ~= 'running' or owner ~= ARGV[2] then return { 'fenced', state or 'missing' } end
            redis.call('HSET', record, ARGV[3], ARGV[4])
            return { 'ok' }
            """)
}
