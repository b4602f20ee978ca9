# shellcheck shell=bash
# Processes of ours, known by id and start time. The kernel gives ids out again;
# the start time beside it tells ours from a stranger that got its number.
# A record is a file that holds both.

# start_detached RECORD LOG COMMAND…: runs on when this shell ends. Its log is new
# at each start; the one before is kept as LOG.old.
start_detached() {
  local record=$1 log=$2
  shift 2
  if [[ -e $log ]]; then mv -f "$log" "$log.old"; fi
  # Called from a shell without job control, setsid does not fork: the id is the
  # command's own.
  set +m
  setsid "$@" </dev/null >"$log" 2>&1 &
  record_process "$record" $!
}

record_process() {
  local record=$1 pid=$2
  printf '%s %s\n' "$pid" "$(start_time "$pid")" >"$record.new"
  mv -f "$record.new" "$record"
}

# start_time PID: in clock ticks since boot. Fields are counted after the name,
# which may itself hold spaces and brackets.
start_time() {
  local stat
  stat=$(cat "/proc/$1/stat" 2>/dev/null) || return 0
  stat=${stat##*) }
  awk '{ print $20 }' <<<"$stat"
}

# recorded_pid RECORD: prints the id if that very process still runs, else fails.
recorded_pid() {
  local pid='' started='' state
  [[ -r $1 ]] || return 1
  read -r pid started <"$1" || true
  [[ $pid =~ ^[0-9]+$ && -n $started && $(start_time "$pid") == "$started" ]] || return 1
  # One that has ended and that nobody has waited for yet (a zombie) is gone.
  state=$(sed -n 's/^State:[[:space:]]*\(.\).*/\1/p' "/proc/$pid/status" 2>/dev/null) || return 1
  [[ -n $state && $state != Z ]] || return 1
  printf '%s\n' "$pid"
}

is_running() {
  recorded_pid "$1" >/dev/null
}

# stop_recorded RECORD NAME SECONDS: asks it to end, and after SECONDS makes it.
stop_recorded() {
  local record=$1 name=$2 seconds=$3 pid began=$SECONDS
  if ! pid=$(recorded_pid "$record"); then
    rm -f "$record"
    return 0
  fi
  kill -TERM "$pid" 2>/dev/null || true
  while is_running "$record"; do
    if ((SECONDS - began >= seconds)); then
      say "$name (process $pid) did not end within $seconds s: killed"
      kill -KILL "$pid" 2>/dev/null || true
      sleep 0.2
      break
    fi
    sleep 0.05
  done
  rm -f "$record"
  say "stopped $name (process $pid)"
}

# wait_until SECONDS RECORD COMMAND…: tries the command until it succeeds; fails
# when the recorded process has ended, or when the time is over.
wait_until() {
  local seconds=$1 record=$2 began=$SECONDS
  shift 2
  until "$@"; do
    is_running "$record" || return 1
    ((SECONDS - began < seconds)) || return 1
    sleep 0.1
  done
}
