# shellcheck shell=bash
# For tests: the real llama-server, as Debian builds it. Bookworm has none, its
# later release forky has. A small Debian of that release is unpacked into the
# cache folder and used by changing into it (../llama-server-debian); nothing of
# it touches the machine's own system.

forky_root() {
  printf '%s/forky\n' "$(cache_folder)"
}

provide_forky() {
  local mirror
  if [[ -x $(forky_root)/usr/bin/llama-server ]]; then return 0; fi
  mirror=$(debian_mirror)
  [[ -n $mirror ]] ||
    die "no Debian mirror for bookworm in apt's sources, needed for the real llama-server: add one, then run apt-get update"
  ask_for_root
  step 1500 "Unpacking Debian's llama-server (about 280 MB)" \
    only_one_at_a_time "$(cache_folder)/locks/forky" 1500 build_forky "$mirror"
}

build_forky() {
  local mirror=$1
  if [[ -x $(forky_root)/usr/bin/llama-server ]]; then return 0; fi
  # In a mount namespace of its own: what is mounted meanwhile goes with it.
  as_root unshare --mount \
    bash "$OPS_FOLDER/lib/build-forky" "$(forky_root)" "$mirror" "$(cache_folder)/models"
}

# The first one for bookworm itself (not its security updates) in the machine's
# apt sources, whichever way they are written: apt reads them for us. It need not
# have been updated yet.
debian_mirror() {
  # shellcheck disable=SC2016 # apt's own placeholders
  apt-get indextargets --no-release-info \
    --format '$(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' |
    awk '$2 == "bookworm" && $3 == "main" && !found { print $1; found = 1 }'
}
