# shellcheck shell=bash
# Debian packages, installed only when missing: a second run asks dpkg and is
# done in some milliseconds.

# What is needed to build and to run.
GENCLUSTER_PACKAGES=(
  librabbitmq-dev libhiredis-dev libcurl4-openssl-dev libssl-dev
  rabbitmq-server redis-server
  python3-venv ca-certificates util-linux libgomp1
)

# What the tests need beside these.
GENCLUSTER_TEST_PACKAGES=(
  amqp-tools redis-tools shellcheck jq debootstrap debian-archive-keyring procps
)

# install_packages NAME…
install_packages() {
  local missing=() name
  for name in "$@"; do
    is_installed "$name" || missing+=("$name")
  done
  if ((${#missing[@]} == 0)); then return 0; fi

  command -v apt-get >/dev/null ||
    die "these Debian packages are missing and there is no apt-get to install them: ${missing[*]}"
  ask_for_root
  say "missing Debian packages: ${missing[*]}"
  step 1200 "Installing Debian packages" \
    as_root bash "$OPS_FOLDER/lib/apt-install" "${missing[@]}"
}

is_installed() {
  [[ $(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}
