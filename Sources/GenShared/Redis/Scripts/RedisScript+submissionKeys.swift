extension RedisScript {
    /// How long a key keeps its job, in milliseconds.
    static let submissionKeyLife = 86_400_000

    static let submissionKeys: [RedisScript] = [reserve, accept, free, hold]

    /// Takes an idempotency key for a job.
    ///
    /// KEYS: 1 `gen:idem:<sha256>`, a text of the job's id, the payload's digest, and `accepted` once it was.
    ///
    /// ARGV: 1 id, 2 digest of the payload.
    ///
    /// Replies: `reserved`; `same <id> <1 if accepted>`; `other <id>` where that job's payload is another.
    static let reserve = RedisScript(
        name: "reserve",
        body: """
            local value = redis.call('GET', KEYS[1])
            if not value then
              redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. ARGV[2], 'PX', \(submissionKeyLife))
              return { 'reserved' }
            end
            local id, payload, mark = string.match(value, '^(%S+) (%S+) ?(%S*)$')
            if not id then return { 'other', value } end
            if payload ~= ARGV[2] then return { 'other', id } end
            return { 'same', id, mark == 'accepted' and 1 or 0 }
            """)

    /// Marks the job of an idempotency key as accepted.
    ///
    /// KEYS: 1 `gen:idem:<sha256>`.
    ///
    /// ARGV: 1 id.
    ///
    /// Replies: `accepted`; `gone` where the key is no longer this job's.
    static let accept = RedisScript(
        name: "accept",
        body: """
            local id, mark = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) %S+ ?(%S*)$')
            if id ~= ARGV[1] then return { 'gone' } end
            -- APPEND leaves the time to live as it is.
            if mark == '' then redis.call('APPEND', KEYS[1], ' accepted') end
            return { 'accepted' }
            """)

    /// Takes a key away from a job whose submission was refused: compare and delete.
    ///
    /// KEYS: 1 `gen:idem:<sha256>` or `gen:unique:<sha256>`.
    ///
    /// ARGV: 1 id.
    ///
    /// Replies: `free` where it is not this job's, now or before; `accepted` where another submission of the same job
    /// was: the key stays.
    static let free = RedisScript(
        name: "free",
        body: """
            local id, mark = string.match(redis.call('GET', KEYS[1]) or '', '^(%S+) %S+ ?(%S*)$')
            if id ~= ARGV[1] then return { 'free' } end
            if mark == 'accepted' then return { 'accepted' } end
            redis.call('DEL', KEYS[1])
            return { 'free' }
            """)

    /// Takes a unique key for a job: compare and set.
    ///
    /// KEYS: 1 `gen:unique:<sha256>`, a text of the job's id and when it took the key (ms).
    ///
    /// ARGV: 1 id, 2 the holder that may be replaced, since it has ended; or empty.
    ///
    /// Replies: `held`; `kept` where the job had it already; `busy <id> <ms since it took the key>`.
    static let hold = RedisScript(
        name: "hold",
        body: """
            local t = redis.call('TIME')
            local time = t[1] * 1000 + math.floor(t[2] / 1000)
            local value = redis.call('GET', KEYS[1])
            -- An id alone, as somebody may have set it by hand, has been there for ever.
            local id, since = string.match(value or '', '^(%S+) ?(%d*)$')
            if value and not id then return { 'busy', value, 0 } end
            since = tonumber(since or '') or 0
            if id and id ~= ARGV[1] and id ~= ARGV[2] then
              return { 'busy', id, string.format('%.0f', math.max(0, time - since)) }
            end
            if id == ARGV[1] then return { 'kept' } end
            redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. string.format('%.0f', time), 'PX', \(submissionKeyLife))
            return { 'held' }
            """)
}
