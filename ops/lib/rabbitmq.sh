# shellcheck shell=bash
# A RabbitMQ server in a folder of its own, on 127.0.0.1, with its own Erlang
# port mapper (epmd), cookie and user. It can run beside any other one.

# start_rabbitmq FOLDER: does nothing if it runs already.
start_rabbitmq() {
  local folder=$1 port
  if rabbitmq_runs "$folder"; then return 0; fi
  stop_rabbitmq "$folder" # half of it may still be there
  mkdir -p "$folder"/{data,log,home}
  chmod 700 "$folder"
  port=$(kept_port "$folder/port")
  kept_port "$folder/distribution-port" >/dev/null
  kept_port "$folder/epmd-port" >/dev/null
  write_rabbitmq_configuration "$folder" "$port"
  write_erlang_cookie "$folder/home/.erlang.cookie"
  if [[ -e $folder/log/rabbitmq.log ]]; then
    mv -f "$folder/log/rabbitmq.log" "$folder/log/rabbitmq.log.old"
  fi
  start_epmd "$folder"
  local environment inside
  readarray -t environment < <(rabbitmq_environment "$folder")
  readarray -t inside < <(inside_release "$folder")
  start_detached "$folder/pid" "$folder/log/console" \
    env "${environment[@]}" "${inside[@]}" /usr/lib/rabbitmq/bin/rabbitmq-server
  if ! wait_until 90 "$folder/pid" rabbitmq_answers "$port"; then
    echo "RabbitMQ did not start on port $port; the end of its logs in $folder/log:"
    tail -q -n 12 "$folder/log/rabbitmq.log" "$folder/log/console" 2>/dev/null | cut -c1-400 || true
    stop_rabbitmq "$folder"
    echo "to begin anew, without the jobs in it: delete $folder"
    return 1
  fi
}

# Started by us and not by Erlang, so that its process id is known.
start_epmd() {
  local folder=$1 port inside
  port=$(cat "$folder/epmd-port")
  readarray -t inside < <(inside_release "$folder")
  start_detached "$folder/epmd.pid" "$folder/log/epmd" \
    "${inside[@]}" epmd -address 127.0.0.1 -port "$port"
  if ! wait_until 10 "$folder/epmd.pid" port_answers "$port"; then
    echo "epmd did not start on port $port; the end of $folder/log/epmd:"
    tail -n 20 "$folder/log/epmd" || true
    return 1
  fi
}

# consumer_timeout: how long a delivery may stay unacknowledged. The default of
# 30 minutes is too near the longest job with its retries.
# max_message_size: 128 MiB by default up to 3.13, 16 MiB later; the same for all,
# so that a message that is far too large is met by the worker's own limit, too.
write_rabbitmq_configuration() {
  local folder=$1 port=$2
  echo '[].' >"$folder/enabled_plugins"
  (
    umask 077
    [[ -s $folder/password ]] || random_password >"$folder/password"
    cat >"$folder/rabbitmq.conf" <<CONFIGURATION
listeners.tcp.1 = 127.0.0.1:$port
default_user = gencluster
default_pass = $(cat "$folder/password")
default_user_tags.administrator = true
consumer_timeout = 7200000
heartbeat = 10
max_message_size = 67108864
log.console = false
log.file.level = info
CONFIGURATION
  )
}

# Who knows the cookie may run anything in the server. Erlang would make one of
# 20 letters, and refuses one that others may read.
write_erlang_cookie() {
  if [[ ! -s $1 ]]; then
    (
      umask 077
      random_password >"$1"
    )
  fi
  chmod 400 "$1"
}

random_password() {
  od -An -tx1 -N24 /dev/urandom | tr -d ' \n'
}

# One NAME=VALUE a line. It serves the programs in /usr/lib/rabbitmq/bin; those of
# the same name in /usr/sbin are wrappers that switch to the user rabbitmq and to
# the system's own server.
# RABBITMQ_ALLOW_INPUT makes the start script become the server, so that there is
# one process with one id; -noinput then takes the input away again. The other
# Erlang arguments keep its own ports on 127.0.0.1, and its threads from spinning
# when there is nothing to do.
rabbitmq_environment() {
  local folder=$1
  cat <<ENVIRONMENT
HOME=$folder/home
RABBITMQ_NODENAME=$(rabbitmq_node "$folder")
RABBITMQ_CONF_ENV_FILE=$folder/none
RABBITMQ_CONFIG_FILE=$folder/rabbitmq.conf
RABBITMQ_ADVANCED_CONFIG_FILE=$folder/none.config
RABBITMQ_GENERATED_CONFIG_DIR=$folder/data/config
RABBITMQ_ENABLED_PLUGINS_FILE=$folder/enabled_plugins
RABBITMQ_FEATURE_FLAGS_FILE=$folder/feature_flags
RABBITMQ_MNESIA_BASE=$folder/data
RABBITMQ_LOG_BASE=$folder/log
RABBITMQ_LOGS=$folder/log/rabbitmq.log
RABBITMQ_PID_FILE=$folder/server.pid
RABBITMQ_NODE_IP_ADDRESS=127.0.0.1
RABBITMQ_NODE_PORT=$(cat "$folder/port")
RABBITMQ_DIST_PORT=$(cat "$folder/distribution-port")
ERL_EPMD_ADDRESS=127.0.0.1
ERL_EPMD_PORT=$(cat "$folder/epmd-port")
ERL_CRASH_DUMP=$folder/log/erl_crash.dump
RABBITMQ_ALLOW_INPUT=1
RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS=-noinput -kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none
ENVIRONMENT
}

# The node's name is part of its data's path, so it must not change; and it must
# be the folder's own, since a name can be taken only once on a machine.
rabbitmq_node() {
  printf 'gen%s@localhost\n' "$(printf '%s' "$1" | sha256sum | cut -c1-12)"
}

rabbitmq_runs() {
  is_running "$1/pid" && is_running "$1/epmd.pid" && rabbitmq_answers "$(cat "$1/port")"
}

# The port is opened last of all. Greeted in AMQP, the server sends a method
# frame, which begins with a byte of value 1.
rabbitmq_answers() {
  local first=''
  exec {amqp_fd}<>"/dev/tcp/127.0.0.1/$1" || return 1
  printf 'AMQP\0\0\11\1' >&"$amqp_fd"
  LC_ALL=C IFS= read -r -d '' -N 1 -t 5 -u "$amqp_fd" first || true
  exec {amqp_fd}>&-
  [[ $first == $'\1' ]]
} 2>/dev/null

# No slash at the end: some clients take that for a virtual host without a name.
amqp_url() {
  printf 'amqp://gencluster:%s@127.0.0.1:%s\n' "$(cat "$1/password")" "$(cat "$1/port")"
}

# rabbitmq_control FOLDER ARGUMENT…: its own rabbitmqctl, which knows its cookie.
rabbitmq_control() {
  local folder=$1 environment inside
  shift
  readarray -t environment < <(rabbitmq_environment "$folder")
  readarray -t inside < <(inside_release "$folder")
  env "${environment[@]}" "${inside[@]}" /usr/lib/rabbitmq/bin/rabbitmqctl "$@"
}

stop_rabbitmq() {
  stop_recorded "$1/pid" RabbitMQ 30
  stop_recorded "$1/epmd.pid" "RabbitMQ's epmd" 5
}
