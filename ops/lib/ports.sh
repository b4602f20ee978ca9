# shellcheck shell=bash
# Free ports on 127.0.0.1.

# free_port: prints one that nothing listens on. They are taken from below the
# range the kernel gives to outgoing connections (32768 and up), which could
# otherwise take the port between this check and the server's start.
free_port() {
  local port tries
  for ((tries = 0; tries < 100; tries++)); do
    port=$((20000 + RANDOM % 10000))
    if ! port_answers "$port"; then
      printf '%d\n' "$port"
      return 0
    fi
  done
  echo "no free port found between 20000 and 29999 on 127.0.0.1" >&2
  return 1
}

# kept_port FILE: the port noted in the file if it is free, else a new one, noted
# there. So a server that is started again keeps its address.
kept_port() {
  local file=$1 port=''
  if [[ -r $file ]]; then read -r port <"$file" || true; fi
  if [[ ! $port =~ ^[0-9]+$ ]] || port_answers "$port"; then
    port=$(free_port)
    printf '%s\n' "$port" >"$file"
  fi
  printf '%s\n' "$port"
}

port_answers() {
  (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null
}
