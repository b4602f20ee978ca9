extension RedisScript {
    /// Takes the lease of a job for one attempt, or says why not.
    ///
    /// ARGV: 2 owner token, 3 lease (ms), 4 members of the `started` event beside type and attempt, 5 whether a job
    /// may be given whose worker went away before (1 or 0), 6 the owner under which the same worker gave up
    /// before without being able to say so (or empty), then what the record is made of where the message came from another
    /// client: 7 body, 8 kind, 9 tenant, 10 pool, 11 lane, 12 created_at, 13 expires_at.
    ///
    /// Replies: `missing` where there is no record and no body was sent; `claimed <attempt> <last> <failures> <crashes> <preempted> <ms since queued> <cancel wanted>`;
    /// `terminal <state>`; `busy <ms left of the other's lease>`; `wait <ms>`; `suspect <crashes>`; `ended <state>` where the script itself
    /// wrote the end: cancelled, expired, failed (exhausted or poison).
    static let claim = RedisScript(
        name: "claim",
        body: ScriptPrelude.text
            + """
            -- Members that are no JSON must fail here, before anything is written.
            local who = cjson.decode('{' .. ARGV[4] .. '}')
            local function text(value) return type(value) == 'string' and value or '' end
            local time = now()
            local state, owner, lease, attempt, failures, crashes, preempted, last, wait, expires, queued =
              unpack(redis.call('HMGET', record, 'state', 'owner', 'lease_until', 'attempt', 'failures', 'crashes',
                'preempted', 'last', 'not_before', 'expires_at', 'queued_at'))
            local isNew = not state
            if isNew and not ARGV[7] then return { 'missing' } end
            if isNew then
              state, owner, lease, attempt, failures, crashes, preempted = 'queued', '', 0, 0, 0, 0, 0
              last, wait, expires, queued = '0-1', 0, ARGV[13], tonumber(ARGV[12]) or time
              if queued > time then queued = time end
            end
            lease, attempt, failures = count(lease), count(attempt), count(failures)
            crashes, preempted, wait, expires = count(crashes), count(preempted), count(wait), count(expires)
            queued = queued and count(queued) or time
            last = last or '0-1'
            if isTerminal(state) then return { 'terminal', state } end
            -- The caller's own attempt, which is over: no crash, and nobody to wait for.
            local isOwn = state == 'running' and ARGV[6] ~= '' and owner == ARGV[6]
            if state == 'running' and lease > time and not isOwn then
              if owner == ARGV[2] then
                return { 'claimed', attempt, last, failures, crashes, preempted, integer(time - queued),
                  redis.call('EXISTS', flag) }
              end
              return { 'busy', integer(lease - time) }
            end
            local function make()
              if isNew then
                redis.call('HSET', record, 'message', ARGV[7], 'kind', ARGV[8], 'tenant', ARGV[9], 'pool', ARGV[10],
                  'lane', ARGV[11], 'created_at', ARGV[12], 'expires_at', ARGV[13], 'queued_at', integer(queued),
                  'failures', 0, 'preempted', 0, 'not_before', 0)
              end
            end
            if redis.call('EXISTS', flag) == 1 then
              local fields, pairs = cancelled(time)
              make()
              conclude('cancelled', last, fields, time, pairs)
              return { 'ended', 'cancelled' }
            end
            local function fail(code, message)
              local failure = '{"code":"' .. code .. '","message":"' .. message .. '","retryable":false}'
              make()
              conclude('failed', last, '"type":"failed","error":' .. failure, time, { 'error', failure, 'crashes', crashes })
              return { 'ended', 'failed' }
            end
            if state == 'running' and not isOwn then
              crashes = crashes + 1
              if crashes >= \(ScriptPrelude.crashLimit) then
                return fail('poison', crashes .. ' workers went away while they ran this job')
              end
            elseif state ~= 'running' and expires > 0 and expires <= time then
              make()
              conclude('expired', last, '"type":"expired"', time)
              return { 'ended', 'expired' }
            end
            if failures >= \(ScriptPrelude.failureLimit) then
              return fail('exhausted', failures .. ' attempts failed')
            end
            if wait > time then return { 'wait', integer(wait - time) } end
            if crashes > 0 and ARGV[5] ~= '1' then return { 'suspect', crashes } end
            attempt = attempt + 1
            local id = integer(attempt) .. '-1'
            local fields = '"type":"started","attempt":' .. integer(attempt) .. ',' .. ARGV[4]
            if attempt > 1 then fields = fields .. ',"restarted":true' end
            make()
            emit(id, compose(id, last, fields))
            redis.call('HSET', record, 'state', 'running', 'attempt', attempt, 'owner', ARGV[2], 'crashes', crashes,
              'lease_until', integer(time + ARGV[3]), 'last', id, 'started_at', integer(time),
              'worker', text(who.worker), 'backend', text(who.backend), 'model', text(who.model))
            redis.call('PEXPIRE', record, \(ScriptPrelude.openRecord))
            redis.call('PEXPIRE', events, \(ScriptPrelude.openRecord))
            return { 'claimed', attempt, id, failures, crashes, preempted, integer(time - queued), 0 }
            """)
}
