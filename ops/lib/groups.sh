# shellcheck shell=bash
# Commands with a process group of their own, so that Ctrl-C and a time limit end
# all that they have started.

# start_group COMMAND… (a program or a function): runs it in the background.
# Sets $group.
start_group() {
  set -m # job control: it is what gives the group
  (
    set -e
    "$@"
  ) </dev/null &
  group=$!
  set +m
  saved_traps=$(trap -p INT TERM)
  # shellcheck disable=SC2064 # this group, whatever $group is later
  trap "end_group $group; exit 130" INT
  # shellcheck disable=SC2064
  trap "end_group $group; exit 143" TERM
}

# finish_group: waits for it to end and returns its exit status.
finish_group() {
  local status=0
  wait "$group" || status=$?
  trap - INT TERM
  eval "$saved_traps"
  return "$status"
}

end_group() {
  local tries
  kill -TERM -- "-$1" 2>/dev/null || return 0
  for ((tries = 0; tries < 20; tries++)); do
    sleep 0.1
    kill -0 -- "-$1" 2>/dev/null || return 0
  done
  kill -KILL -- "-$1" 2>/dev/null || true
}

# limited SECONDS COMMAND…: its output passes through. Fails with 124 when the
# time is over. What it leaves behind is ended, too.
limited() {
  local limit=$1 began=$SECONDS late='' status=0
  shift
  start_group "$@"
  while kill -0 "$group" 2>/dev/null; do
    if ((SECONDS - began >= limit)); then
      late=yes
      break
    fi
    sleep 0.2
  done
  end_group "$group"
  finish_group || status=$?
  if [[ -n $late ]]; then status=124; fi
  return "$status"
}
