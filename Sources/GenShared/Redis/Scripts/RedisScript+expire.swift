extension RedisScript {
    /// Ends a waiting job whose time is over.
    ///
    /// Whoever sees it first, worker, watcher or `status`, calls this.
    ///
    /// Replies: `expired`; `alive <state>`; `missing`.
    static let expire = RedisScript(
        name: "expire",
        body: ScriptPrelude.text
            + """
            local state, last, expires = unpack(redis.call('HMGET', record, 'state', 'last', 'expires_at'))
            if not state then return { 'missing' } end
            local time = now()
            expires = tonumber(expires) or 0
            if (state ~= 'queued' and state ~= 'retrying') or expires == 0 or expires > time then
              return { state == 'expired' and 'expired' or 'alive', state }
            end
            conclude('expired', last or '0-1', '"type":"expired"', time)
            return { 'expired' }
            """)
}
