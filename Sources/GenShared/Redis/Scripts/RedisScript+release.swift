extension RedisScript {
    /// Gives a running job back for another attempt.
    ///
    /// A cancel that came just before wins.
    ///
    /// ARGV: 2 owner, 3 last event, 4 what counts (`failures`, `preempted`, or empty), 5 delay until the next attempt
    /// (ms), 6 members of the `retrying` event, 7 usage so far (JSON, or empty).
    ///
    /// Replies: `released <failures>`; `ended cancelled`; `behind <last>`; `fenced <state>`. Repeated by the owner:
    /// `released` again.
    static let release = RedisScript(
        name: "release",
        body: ScriptPrelude.text
            + """
            local state, owner, last, failures, gone = unpack(redis.call('HMGET', record, 'state', 'owner', 'last', 'failures',
              'released_by'))
            if state == 'retrying' and gone == ARGV[2] then return { 'released', tonumber(failures) or 0 } end
            if state ~= 'running' or owner ~= ARGV[2] then return { 'fenced', state or 'missing' } end
            if precedes(last, ARGV[3]) then return { 'behind', last } end
            if last ~= ARGV[3] then return { 'fenced', state } end
            local time = now()
            if redis.call('EXISTS', flag) == 1 then
              local fields, pairs = cancelled(time, ARGV[7])
              pairs[#pairs + 1], pairs[#pairs + 2] = 'usage', ARGV[7]
              conclude('cancelled', last, fields, time, pairs)
              return { 'ended', 'cancelled' }
            end
            local id = following(last)
            emit(id, compose(id, last, ARGV[6]))
            if ARGV[4] ~= '' then redis.call('HINCRBY', record, ARGV[4], 1) end
            redis.call('HSET', record, 'state', 'retrying', 'owner', '', 'released_by', ARGV[2], 'lease_until', 0,
              'last', id, 'not_before', integer(time + ARGV[5]))
            return { 'released', tonumber(redis.call('HGET', record, 'failures')) or 0 }
            """)
}
