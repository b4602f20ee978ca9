# shellcheck shell=bash
# Becoming root for the few things that need it.

# ask_for_root: asks for the password now, if one is needed. Later steps run in
# the background, where sudo could not ask.
ask_for_root() {
  if ((EUID == 0)); then return 0; fi
  if ! command -v sudo >/dev/null; then
    die "this needs root to install Debian packages: run it as root, or install sudo"
  fi
  sudo -v || die "sudo was refused: run this as root, or as a user who may use sudo"
}

as_root() {
  if ((EUID == 0)); then
    "$@"
  else
    sudo -n -- "$@"
  fi
}
