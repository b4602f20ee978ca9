# shellcheck shell=bash
# Shows what is being done and for how long. All of it goes to standard error:
# standard output belongs to the result.

# say TEXT…
say() {
  printf '==> %s\n' "$*" >&2
}

# die TEXT…: one line that says what is wrong and what to do.
die() {
  printf '%s: %s\n' "${0##*/}" "$*" >&2
  exit 1
}

# step SECONDS TITLE COMMAND…
# Runs the command (a program or a function) with its output kept aside. Within a
# second nothing but the title is seen; slower ones show the time and the last
# line of output: on a terminal in place, elsewhere one line each 30 s, so that
# a log shows that it is alive. On failure, or after SECONDS, the end of the
# output is shown and the caller ends.
# Never call it in a condition: bash would then ignore errors inside COMMAND.
step() {
  local limit=$1 title=$2
  shift 2
  local log began=$SECONDS status=0
  log=$(mktemp "${TMPDIR:-/tmp}/gencluster-step.XXXXXX")
  if [[ -t 2 ]]; then
    printf '==> %s …' "$title" >&2
  else
    say "$title …"
  fi

  start_group "$@" >"$log" 2>&1
  if watch_step "$limit" "$title" "$log" "$began"; then
    finish_group || status=$?
  else
    end_group "$group"
    finish_group || true
    status=124
  fi

  if ((status == 0)); then
    finish_step "$title" $((SECONDS - began))
    rm -f "$log"
    return 0
  fi
  if [[ -t 2 ]]; then printf '\n' >&2; fi
  if ((status == 124)); then
    say "$title: not done after $limit s, given up. Its last lines:"
  else
    say "$title: failed (exit status $status). Its last lines:"
  fi
  tail -n 30 "$log" | sed 's/^/    /' >&2
  rm -f "$log"
  exit 1
}

# Waits for the group's first process; fails when the limit is over.
watch_step() {
  local limit=$1 title=$2 log=$3 began=$4
  local spinner="|/-\\" turn=0 told=$SECONDS
  while kill -0 "$group" 2>/dev/null; do
    if ((SECONDS - began >= limit)); then return 1; fi
    if [[ -t 2 ]]; then
      if ((SECONDS - began >= 1)); then
        printf '\r\033[K==> %s … %s %d s  %s' "$title" \
          "${spinner:turn++%4:1}" $((SECONDS - began)) "$(last_line "$log" "$title")" >&2
      fi
    elif ((SECONDS - told >= 30)); then
      told=$SECONDS
      printf '    %s: %d s  %s\n' "$title" $((SECONDS - began)) "$(last_line "$log" "$title")" >&2
    fi
    sleep 0.1
  done
}

finish_step() {
  local title=$1 elapsed=$2
  if [[ -t 2 ]]; then
    printf '\r\033[K==> %s … done' "$title" >&2
    if ((elapsed >= 1)); then printf ' (%d s)' "$elapsed" >&2; fi
    printf '\n' >&2
  elif ((elapsed >= 1)); then
    printf '    done (%d s)\n' "$elapsed" >&2
  fi
}

# The newest line of a log without control characters, cut to fit one row.
last_line() {
  local log=$1 title=$2 room
  room=$((${COLUMNS:-80} - ${#title} - 20))
  if ((room < 10)); then room=10; fi
  tail -c 400 "$log" | tr '\r' '\n' | tr -d '\000-\011\013-\037\177' |
    awk -v room="$room" 'NF { line = $0 } END { print substr(line, 1, room) }'
}
