extension RedisScript {
    /// Ends a job that nobody runs and nobody will: it could not be read, routed or kept.
    ///
    /// ARGV: 2 error (JSON), then what the record is made of where there is none: 3 body, 4 kind, 5 tenant, 6 pool,
    /// 7 lane, 8 created_at.
    ///
    /// Replies: `rejected`; `terminal <state>`; `busy` where somebody runs it under a live lease.
    static let reject = RedisScript(
        name: "reject",
        body: ScriptPrelude.text
            + """
            local state, last, lease = unpack(redis.call('HMGET', record, 'state', 'last', 'lease_until'))
            if state and isTerminal(state) then return { 'terminal', state } end
            local time = now()
            if state == 'running' and (tonumber(lease) or 0) > time then return { 'busy' } end
            if not state then
              redis.call('HSET', record, 'message', ARGV[3], 'kind', ARGV[4], 'tenant', ARGV[5], 'pool', ARGV[6],
                'lane', ARGV[7], 'created_at', ARGV[8], 'queued_at', integer(time), 'attempt', 0)
            end
            conclude('failed', last or '0-1', '"type":"failed","error":' .. ARGV[2], time, { 'error', ARGV[2] })
            return { 'rejected' }
            """)
}
