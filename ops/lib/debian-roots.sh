# shellcheck shell=bash
# For tests: the brokers of Debian's later releases. A small Debian of each is
# unpacked into the cache folder; a server runs in it by changing into it, in a
# mount namespace of its own. The network is the machine's, its data folder is
# outside, and nothing of the machine's own system is touched.
#
# A folder of a server that holds a file `release` is served by that release;
# one without by the machine's own packages.

# release_of_rabbitmq VERSION: prints the release that has it; nothing for the
# machine's own.
release_of_rabbitmq() {
  case $1 in
    3.10) ;;
    4.0) echo trixie ;;
    4.3) echo forky ;;
    *) return 1 ;;
  esac
}

debian_root() {
  printf '%s/brokers/%s\n' "$(cache_folder)" "$1"
}

debian_root_is_there() {
  [[ -x $(debian_root "$1")/usr/lib/rabbitmq/bin/rabbitmq-server && -x $(debian_root "$1")/usr/bin/redis-server ]]
}

# provide_debian_root RELEASE
provide_debian_root() {
  local release=$1 mirror
  if debian_root_is_there "$release"; then return 0; fi
  mirror=$(debian_mirror)
  [[ -n $mirror ]] ||
    die "no Debian mirror for bookworm in apt's sources, needed for the brokers of $release: add one, then run apt-get update"
  ask_for_root
  step 1500 "Unpacking Debian $release's RabbitMQ and Redis (about 500 MB)" \
    only_one_at_a_time "$(cache_folder)/locks/brokers-$release" 1500 build_debian_root "$release" "$mirror"
}

build_debian_root() {
  local release=$1 mirror=$2
  if debian_root_is_there "$release"; then return 0; fi
  mkdir -p "$(dirname "$(debian_root "$release")")"
  # In a mount namespace of its own: what is mounted meanwhile goes with it.
  as_root unshare --mount \
    bash "$OPS_FOLDER/lib/build-debian-root" "$(debian_root "$release")" "$release" "$mirror" \
    rabbitmq-server redis-server
}

# server_release FOLDER: prints the release that serves it; nothing for the
# machine's own.
server_release() {
  if [[ -r $1/release ]]; then cat "$1/release"; fi
}

# inside_release FOLDER: prints, one word a line, what has to stand before a
# command so that it runs where the folder's server runs. Every program in it
# becomes the next, so that the process id is the command's own.
inside_release() {
  local folder=$1 release
  release=$(server_release "$folder")
  if [[ -z $release ]]; then return 0; fi
  printf '%s\n' unshare --mount
  # Who is not root becomes it in a user namespace, which needs no rights.
  if ((EUID != 0)); then printf '%s\n' --map-root-user; fi
  printf '%s\n' bash "$OPS_FOLDER/lib/enter-debian-root" "$(debian_root "$release")" "$folder"
}
