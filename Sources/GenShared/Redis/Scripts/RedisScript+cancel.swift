extension RedisScript {
    /// Asks for a job's end, or ends it where nobody runs it.
    ///
    /// ARGV: 2 who asks, 3 the control channel, 4 the job's id.
    ///
    /// Replies: `cancelled` where it ended at once; `flagged` where a worker runs it and was told; `terminal <state>`;
    /// `unknown` where there is no record: flagged, should the job still arrive.
    static let cancel = RedisScript(
        name: "cancel",
        body: ScriptPrelude.text
            + """
            local state, lease, last = unpack(redis.call('HMGET', record, 'state', 'lease_until', 'last'))
            if state and isTerminal(state) then return { 'terminal', state } end
            local time = now()
            redis.call('SET', flag, '{"by":' .. cjson.encode(ARGV[2]) .. ',"at":' .. integer(time) .. '}', 'NX', 'PX',
              \(ScriptPrelude.cancelFlag))
            if not state then return { 'unknown' } end
            if state == 'running' and (tonumber(lease) or 0) > time then
              redis.pcall('PUBLISH', ARGV[3], 'cancel ' .. ARGV[4])
              return { 'flagged' }
            end
            local fields, pairs = cancelled(time)
            conclude('cancelled', last or '0-1', fields, time, pairs)
            return { 'cancelled' }
            """)
}
