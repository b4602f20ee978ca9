# shellcheck shell=bash
# Building the programs.

require_swift() {
  command -v swift >/dev/null ||
    die "no swift on PATH: install the Swift 6 toolchain for Debian 12 (see swift.org/install) and try again"
}

# The Swift library is linked in, so that the programs run where there is no
# toolchain. When nothing changed this takes a second.
build_release() {
  step 3600 "Building the programs (release)" \
    swift build --package-path "$PROJECT_FOLDER" -c release --static-swift-stdlib
}
