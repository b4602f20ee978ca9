extension RedisScript {
    /// Ends a running job: last events, state, result and terminal event in one step.
    ///
    /// A cancel that came just before wins: the job is cancelled, whatever its end would have been.
    ///
    /// ARGV: 2 owner, 3 last event before these, 4 state, 5 members of the terminal event, 6 usage (JSON, or empty),
    /// 7 count of events, then id and JSON of each, then names and values for the record.
    ///
    /// Replies: `ok <state>`; `behind <last>`; `fenced <state>`. Repeated by the owner: `ok` again.
    static let finish = RedisScript(
        name: "finish",
        body: ScriptPrelude.text
            + """
            local state, owner, last = unpack(redis.call('HMGET', record, 'state', 'owner', 'last'))
            if owner == ARGV[2] and isTerminal(state) then return { 'ok', state } end
            if state ~= 'running' or owner ~= ARGV[2] then return { 'fenced', state or 'missing' } end
            if precedes(last, ARGV[3]) then return { 'behind', last } end
            local count = tonumber(ARGV[7])
            local start, stop, known = 8, 7 + 2 * count, last == ARGV[3]
            while not known and start < stop do
              known = ARGV[start] == last
              start = start + 2
            end
            if not known then return { 'fenced', state } end
            for i = start, stop, 2 do
              emit(ARGV[i], ARGV[i + 1])
              last = ARGV[i]
            end
            local time = now()
            if ARGV[4] == 'cancelled' or redis.call('EXISTS', flag) == 1 then
              local fields, pairs = cancelled(time, ARGV[6])
              pairs[#pairs + 1], pairs[#pairs + 2] = 'usage', ARGV[6]
              conclude('cancelled', last, fields, time, pairs)
              return { 'ok', 'cancelled' }
            end
            local pairs = { 'usage', ARGV[6] }
            for i = stop + 1, #ARGV do pairs[#pairs + 1] = ARGV[i] end
            conclude(ARGV[4], last, ARGV[5], time, pairs)
            return { 'ok', ARGV[4] }
            """)
}
