extension RedisScript {
    /// Makes the record of a submitted job.
    ///
    /// ARGV: 2 body, 3 kind, 4 tenant, 5 pool, 6 lane, 7 created_at (ms), 8 expires_at (ms, or empty).
    ///
    /// Replies: `created`; `exists <state> <1 if the body is the same, else 0>`.
    static let create = RedisScript(
        name: "create",
        body: ScriptPrelude.text
            + """
            local state, body = unpack(redis.call('HMGET', record, 'state', 'message'))
            if state then return { 'exists', state, body == ARGV[2] and 1 or 0 } end
            local time = now()
            redis.call('HSET', record, 'state', 'queued', 'message', ARGV[2], 'kind', ARGV[3], 'tenant', ARGV[4],
              'pool', ARGV[5], 'lane', ARGV[6], 'created_at', ARGV[7], 'expires_at', ARGV[8], 'queued_at', integer(time),
              'attempt', 0, 'failures', 0, 'crashes', 0, 'preempted', 0, 'last', '0-1', 'owner', '', 'lease_until', 0,
              'not_before', 0)
            redis.call('PEXPIRE', record, \(ScriptPrelude.openRecord))
            redis.pcall('PUBLISH', channel, compose('0-1', '0-0', '"type":"queued"'))
            return { 'created' }
            """)
}
