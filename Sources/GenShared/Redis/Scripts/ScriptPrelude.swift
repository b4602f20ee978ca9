/// What every script begins with.
///
/// Rules of all scripts: checks first, writes last (Redis does not undo a script that fails midway); time is Redis'
/// own; constant cost; the same call by the same owner for the same event ids answers ok again. A missing hash field
/// is `false` in Lua, not nil.
///
/// `KEYS` are always the record, the log and the cancel flag of one job; `ARGV[1]` is always its channel.
enum ScriptPrelude {
    /// How long records are kept, in milliseconds: open ones are refreshed by each claim, ended ones end.
    static let openRecord = 14 * 86_400_000
    static let endedRecord = 86_400_000
    static let endedLog = 600_000
    /// A cancel flag outlives any run, and the wait of a message that is submitted after its cancel.
    static let cancelFlag = 86_400_000
    /// Failures that count before a job is given up, and crashes of its workers.
    static let failureLimit = 4
    static let crashLimit = 3

    static let text = """
        local record, events, flag, channel = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
        local function integer(value) return string.format('%.0f', value) end
        -- A field that anybody may have written: what is no sensible number counts as none. nan differs from itself.
        local function count(value)
          local number = tonumber(value)
          if number and number == number and number >= 0 and number < 9007199254740992 then return number end
          return 0
        end
        local function now()
          local t = redis.call('TIME')
          return t[1] * 1000 + math.floor(t[2] / 1000)
        end
        local function parts(id)
          local a, s = string.match(id or '', '^(%d+)%-(%d+)$')
          return tonumber(a or 0), tonumber(s or 0)
        end
        local function following(id)
          local a, s = parts(id)
          return integer(a) .. '-' .. integer(s + 1)
        end
        local function precedes(left, right)
          local a, s = parts(left)
          local b, t = parts(right)
          return a < b or (a == b and s < t)
        end
        local function isTerminal(state)
          return state == 'completed' or state == 'failed' or state == 'cancelled' or state == 'expired'
        end
        local function emit(id, json)
          local reply = redis.pcall('XADD', events, id, 'e', json)
          if type(reply) == 'table' and reply.err then
            -- Somebody else's key, or entries above ours, would keep the job from ever going on or ending. The record
            -- is the truth of the job; who watches is told that history was lost.
            if string.find(reply.err, 'WRONGTYPE', 1, true) or string.find(reply.err, 'equal or smaller', 1, true) then
              redis.call('DEL', events)
            end
            -- Anything else, a full memory say, fails here as it did before.
            redis.call('XADD', events, id, 'e', json)
          end
          -- The log is the truth and pub/sub the speed: a user without the right to the channel must not leave half
          -- an effect behind.
          redis.pcall('PUBLISH', channel, json)
        end
        local function compose(id, last, fields)
          return '{"id":"' .. id .. '","prev":"' .. last .. '",' .. fields .. '}'
        end
        -- Who asked for the end, and how long ago: a flag that somebody set by hand may hold anything.
        local function cancellation(time)
          local value = redis.pcall('GET', flag)
          local by, at
          if type(value) == 'string' then
            local ok, decoded = pcall(cjson.decode, value)
            if ok and type(decoded) == 'table' then
              if type(decoded.by) == 'string' then by = decoded.by end
              if type(decoded.at) == 'number' and decoded.at > 0 and decoded.at <= time then at = decoded.at end
            end
          end
          return by, at and integer(time - at)
        end
        local function cancelled(time, usage)
          local by, latency = cancellation(time)
          local fields = '"type":"cancelled"'
          if by then fields = fields .. ',"by":' .. cjson.encode(by) end
          if latency then fields = fields .. ',"latency_ms":' .. latency end
          if usage and usage ~= '' then fields = fields .. ',"usage":' .. usage end
          return fields, { 'cancelled_by', by or '', 'cancel_latency_ms', latency or '' }
        end
        -- Writes the end: the last event, the state, and the times after which Redis forgets the job.
        local function conclude(state, last, fields, time, pairs)
          local id = following(last)
          emit(id, compose(id, last, fields))
          redis.call('HSET', record, 'state', state, 'last', id, 'finished_at', integer(time), 'lease_until', 0,
            unpack(pairs or {}))
          redis.call('PEXPIRE', record, \(endedRecord))
          redis.call('PEXPIRE', events, \(endedLog))
          return id
        end

        """
}
