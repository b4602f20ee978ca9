# shellcheck shell=bash
# Sourced by the commands in ops/: finds the folders of this checkout and loads
# the pieces beside this file.

OPS_FOLDER=$(dirname "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")")
PROJECT_FOLDER=$(dirname "$OPS_FOLDER")
RELEASE_FOLDER=$PROJECT_FOLDER/.build/release

for piece in groups progress folders processes ports privileges packages python \
  llama model forky debian-roots redis rabbitmq swift connection worker test-parts faults; do
  # shellcheck source=/dev/null
  . "$OPS_FOLDER/lib/$piece.sh"
done
unset piece
