# shellcheck shell=bash
# Where things live. Downloads are kept in the cache folder, running servers in
# the state folder; both are outside the work tree, so a clean checkout stays
# clean and a second checkout downloads nothing again.

cache_folder() {
  printf '%s\n' "${GEN_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/gencluster}"
}

state_folder() {
  printf '%s\n' "${GEN_STATE_DIR:-${XDG_STATE_HOME:-$HOME/.local/state}/gencluster}"
}

# only_one_at_a_time LOCKFILE SECONDS COMMAND…
# Runs the command under a lock, so that two runs never build the same thing at
# once. The command gets no copy of the lock's file descriptor: a server started
# inside would hold the lock for as long as it lives. If it fails, the shell ends
# and the lock with it.
only_one_at_a_time() {
  local lock=$1 seconds=$2 lock_fd
  shift 2
  mkdir -p "$(dirname "$lock")"
  exec {lock_fd}>"$lock"
  if ! flock --timeout "$seconds" "$lock_fd"; then
    echo "another run has held $lock for $seconds s; wait for it to end, then try again" >&2
    return 1
  fi
  "$@" {lock_fd}>&-
  exec {lock_fd}>&-
}
