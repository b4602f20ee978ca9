# shellcheck shell=bash
# What the tests on real servers need beside the servers, and how they find it.

# Clients that are not ours, to submit and to watch with.
CLIENT_LIBRARIES=(pika==1.4.4 redis==8.1.0)

provide_test_parts() {
  provide_llama_wheel
  provide_small_model
  provide_forky
  if ! python_environment_is_ready clients "${CLIENT_LIBRARIES[@]}"; then
    step 600 "Installing other Python clients: ${CLIENT_LIBRARIES[*]}" \
      python_environment clients "${CLIENT_LIBRARIES[@]}"
  fi
}

# export_test_environment FOLDER: the folder holds the servers. What a test needs
# and is not there is a failure of that test.
export_test_environment() {
  GEN_TEST_SERVERS=$1
  GEN_TEST_OPS=$OPS_FOLDER
  GEN_TEST_AMQP_URL=$(amqp_url "$1/rabbitmq")
  GEN_TEST_REDIS_URL=$(redis_url "$1/redis")
  GEN_TEST_RELEASE_BIN=$(swift build -c release --show-bin-path)
  GEN_TEST_MODEL=$(small_model)
  GEN_TEST_LLAMA_WHEEL=$OPS_FOLDER/llama-server
  GEN_TEST_LLAMA_REAL=$OPS_FOLDER/llama-server-debian
  GEN_TEST_PYTHON=$(python_folder clients)/bin/python
  export GEN_TEST_SERVERS GEN_TEST_OPS GEN_TEST_AMQP_URL GEN_TEST_REDIS_URL GEN_TEST_RELEASE_BIN \
    GEN_TEST_MODEL GEN_TEST_LLAMA_WHEEL GEN_TEST_LLAMA_REAL GEN_TEST_PYTHON
}
