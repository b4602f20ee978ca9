# shellcheck shell=bash
# Python environments in the cache folder, one for each purpose.

# python_environment NAME REQUIREMENT…: makes it unless it is there with the same
# requirements. A note of them, written last, marks it as complete.
python_environment() {
  local name=$1
  shift
  only_one_at_a_time "$(cache_folder)/locks/python-$name" 900 build_python_environment "$name" "$@"
}

python_environment_is_ready() {
  local folder
  folder=$(python_folder "$1")
  shift
  [[ -x $folder/bin/python && -r $folder/requirements && $(<"$folder/requirements") == "$*" ]]
}

python_folder() {
  printf '%s/python/%s\n' "$(cache_folder)" "$1"
}

# Debian's own interpreter is named by its path: another one first in PATH may
# have no wheels.
build_python_environment() {
  local name=$1 folder
  shift
  if python_environment_is_ready "$name" "$@"; then return 0; fi
  folder=$(python_folder "$name")
  rm -rf "$folder"
  mkdir -p "$(dirname "$folder")"
  /usr/bin/python3 -m venv "$folder"
  if (($# > 0)); then
    "$folder/bin/python" -m pip install --no-input --disable-pip-version-check \
      --only-binary :all: --retries 5 "$@"
  fi
  printf '%s' "$*" >"$folder/requirements"
}
