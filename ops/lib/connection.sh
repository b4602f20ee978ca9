# shellcheck shell=bash
# Where the running servers are, noted in the state folder for ops/env.

# Holds the broker's password, so only its owner may read it.
write_connection() {
  local state=$1 file
  file=$(connection_file "$state")
  (
    umask 077
    printf 'GEN_AMQP_URL=%q\nGEN_REDIS_URL=%q\n' \
      "$(amqp_url "$state/rabbitmq")" "$(redis_url "$state/redis")" >"$file.new"
  )
  mv -f "$file.new" "$file"
}

# Sets and exports GEN_AMQP_URL and GEN_REDIS_URL.
read_connection() {
  set -a
  # shellcheck source=/dev/null
  . "$(connection_file "$1")"
  set +a
}

connection_file() {
  printf '%s/connection\n' "$1"
}
