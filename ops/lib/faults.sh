# shellcheck shell=bash
# The fault tests' servers, and running them.

# The cases of ./ops/test, by the names of their functions: those that find most in
# the least time, five minutes together.
SHORT_FAULTS='^FaultTests\.(CheckerTests|ProxyTests|FaultTests/[A-Za-z]+/(f01|f03|f07|f08|f10|f16|f17|f26|f28|f32|f33|f38|f40|f41|f42|f52|f57|f61|f63))'

# start_fault_servers FOLDER RELEASE: empty for the machine's own.
start_fault_servers() {
  local folder=$1 release=$2
  mkdir -p "$folder"/{redis,rabbitmq}
  if [[ -n $release ]]; then
    printf '%s\n' "$release" | tee "$folder/redis/release" >"$folder/rabbitmq/release"
  fi
  step 60 "Starting Redis" start_redis "$folder/redis"
  step 180 "Starting RabbitMQ" start_rabbitmq "$folder/rabbitmq"
}

# A test may have left one frozen, which hears no other signal.
stop_fault_servers() {
  local folder=$1 record pid
  for record in "$folder"/*/pid; do
    if pid=$(recorded_pid "$record"); then kill -CONT "$pid"; fi
  done
  stop_redis "$folder/redis"
  stop_rabbitmq "$folder/rabbitmq"
}

# run_fault_tests FOLDER SECONDS ARGUMENT…: arguments of swift test; prints the
# table of the cases at the end. Fails as they do.
run_fault_tests() {
  local folder=$1 limit=$2 status=0
  shift 2
  limited "$limit" fault_tests "$folder/output" "$@" || status=$?
  fault_table "$folder/output"
  if ((status == 124)); then
    die "not done after $limit s, given up; run a part with --filter to find what hangs"
  elif ((status != 0)); then
    return "$status"
  elif ! grep -q '^. Test .* passed after' "$folder/output"; then
    die "no test was run: nothing matches"
  fi
}

fault_tests() {
  local output=$1
  shift
  swift test --skip-build --disable-xctest "$@" 2>&1 | tee "$output"
}

# One row for each case that was run, as docs/reliability.md shows them.
fault_table() {
  sed -nE 's/^. Test "(F[0-9]+) ([^"]*)"( with [0-9]+ test cases?)? (passed|failed) after ([0-9.]+) seconds.*/\1\t\2\t\4\t\5/p' "$1" |
    sort | awk -F'\t' '
      NR == 1 { print "| case | rule | result | seconds |"; print "|---|---|---|---|" }
      { printf "| %s | %s | %s | %.0f |\n", $1, $2, $3, $4 }'
}
