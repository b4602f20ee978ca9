# shellcheck shell=bash
# The worker on this machine, kept in FOLDER.

# start_worker FOLDER SERVER MODEL: starts it, or leaves the running one alone if
# neither program, configuration nor servers changed since it was started.
start_worker() {
  local folder=$1 fingerprint
  mkdir -p "$folder"
  write_worker_configuration "$@"
  fingerprint=$(worker_fingerprint "$folder")
  if is_running "$folder/pid"; then
    if [[ -r $folder/fingerprint && $(<"$folder/fingerprint") == "$fingerprint" ]]; then
      return 0
    fi
    stop_worker "$folder"
  fi
  start_detached "$folder/pid" "$folder/log" \
    "$RELEASE_FOLDER/genworker" run --config "$folder/config.json5"
  if ! wait_until 120 "$folder/pid" worker_is_ready "$folder"; then
    if is_running "$folder/pid"; then
      echo "the worker was not ready after 120 s; the end of $folder/log:"
    else
      echo "the worker ended before it was ready; the end of $folder/log:"
    fi
    tail -n 20 "$folder/log" || true
    stop_worker "$folder"
    return 1
  fi
  printf '%s' "$fingerprint" >"$folder/fingerprint"
}

# A JSON string is a JSON5 string: the paths are written as such.
write_worker_configuration() {
  local folder=$1 server=$2 model=$3 threads
  threads=$(nproc)
  if ((threads > 8)); then threads=8; fi
  cat >"$folder/config.json5" <<CONFIGURATION
// Written by ops/quickstart at each start; changes here are lost.
{
  backends: {
    local: {
      type: "llama-server",
      command: $(json_string "$server"),
      model: $(json_string "$model"),
      parallel: 4,
      context: 2048, // tokens, for each of them
      threads: $threads,
    },
  },
  pools: {
    text: { kinds: ["slogan", "rewrite", "reply"], slots: 4, backends: ["local"] },
  },
}
CONFIGURATION
}

json_string() {
  local text=${1//\\/\\\\}
  printf '"%s"' "${text//\"/\\\"}"
}

worker_fingerprint() {
  local folder=$1
  {
    sha256sum "$RELEASE_FOLDER/genworker" "$folder/config.json5"
    printf '%s %s\n' "$GEN_AMQP_URL" "$GEN_REDIS_URL"
  } | sha256sum
}

worker_is_ready() {
  grep -q '"ready"' "$1/log"
}

# 30 s: it lets running jobs finish for up to 25 s.
stop_worker() {
  stop_recorded "$1/pid" "the worker" 30
}
