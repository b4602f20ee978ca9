extension RedisScript {
    /// All scripts, for a connection to load.
    package static let all: [RedisScript] =
        [
            create, claim, append, renew, release, finish, cancel, reject, expire, remember,
        ] + submissionKeys
}
