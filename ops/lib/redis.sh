# shellcheck shell=bash
# A Redis server in a folder of its own, on 127.0.0.1.

# start_redis FOLDER: does nothing if it runs already. The port is kept in
# FOLDER/port.
start_redis() {
  local folder=$1 port inside
  if redis_runs "$folder"; then return 0; fi
  stop_redis "$folder" # one that runs but does not answer
  mkdir -p "$folder"
  chmod 700 "$folder"
  port=$(kept_port "$folder/port")
  write_redis_configuration "$folder" "$port"
  readarray -t inside < <(inside_release "$folder")
  start_detached "$folder/pid" "$folder/log" \
    env "${inside[@]}" redis-server "$folder/redis.conf"
  if ! wait_until 30 "$folder/pid" redis_answers "$port"; then
    echo "Redis did not start on port $port; the end of $folder/log:"
    tail -n 20 "$folder/log" || true
    stop_redis "$folder"
    echo "to begin anew, without the jobs in it: delete $folder"
    return 1
  fi
}

# Appended to disk, so that jobs survive a restart. Nothing is ever evicted: a
# full server must refuse, not forget a job.
write_redis_configuration() {
  local folder=$1 port=$2
  cat >"$folder/redis.conf" <<CONFIGURATION
bind 127.0.0.1
port $port
dir "$folder"
appendonly yes
appendfsync everysec
save ""
maxmemory-policy noeviction
daemonize no
CONFIGURATION
}

redis_runs() {
  is_running "$1/pid" && redis_answers "$(cat "$1/port")"
}

# Asked in its own protocol, without redis-cli: that is a package of the tests.
redis_answers() {
  local answer=''
  exec {redis_fd}<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf 'PING\r\n' >&"$redis_fd"
  IFS= read -r -t 2 -u "$redis_fd" answer || true
  exec {redis_fd}>&-
  [[ $answer == +PONG* ]]
} 2>/dev/null

redis_url() {
  printf 'redis://127.0.0.1:%s/0\n' "$(cat "$1/port")"
}

stop_redis() {
  stop_recorded "$1/pid" Redis 10
}
