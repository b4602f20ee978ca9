# shellcheck shell=bash
# A llama-server to run models with.

# The wheel holds llama.cpp's own server, built for any processor of its kind.
LLAMA_WHEEL=xllamacpp==2026.10.11549

# provide_llama_server: installs the wheel, unless the machine has its own server.
provide_llama_server() {
  if command -v llama-server >/dev/null; then return 0; fi
  provide_llama_wheel
}

provide_llama_wheel() {
  if python_environment_is_ready llama "$LLAMA_WHEEL"; then return 0; fi
  step 900 "Installing the llama.cpp server (a wheel of 34 MB)" \
    python_environment llama "$LLAMA_WHEEL"
}

# llama_server: the path of the one that is used.
llama_server() {
  command -v llama-server || printf '%s/llama-server\n' "$OPS_FOLDER"
}
