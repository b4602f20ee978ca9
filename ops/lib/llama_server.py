"""llama.cpp's HTTP server out of the xllamacpp wheel, run as the real program is.

What was seen with xllamacpp 2026.10.11549 beside the real llama-server:
- The port answers while the model loads, every path with 503 "Loading model";
  /health needs no key, all other paths answer 401 without it. The same.
- After SIGTERM the real one stops generating and then waits for clients that
  still hold a stream open, 30 s at most; a second signal ends it with status 1.
  This one cuts the streams and ends at once with status 0. Both are killed by the
  signal while they load. The reason: the wheel holds Python's lock while it loads
  and while it shuts down, so that no Python code could answer a second signal.
  There is nothing to save, so shutting down is left out.
"""

import argparse
import os
import signal
import sys


def fail(message):
    print(f"llama-server: {message}", file=sys.stderr)
    sys.exit(1)


class Arguments(argparse.ArgumentParser):
    def error(self, message):
        """The real program's exit status is 1, argparse's would be 2."""
        fail(f"{message}; see --help")


def parse(words):
    parser = Arguments(
        prog="llama-server",
        description="llama.cpp's HTTP server out of the xllamacpp wheel. "
        "API keys: environment variable LLAMA_API_KEY (several with commas) or --api-key-file.",
        allow_abbrev=False,
    )
    option = parser.add_argument
    option("-m", "--model", metavar="FILE", help="the model, a GGUF file")
    option("--host", default="127.0.0.1", help="address, or a path that ends in .sock")
    option("--port", type=int, default=8080)
    option("-np", "--parallel", type=int, default=-1, metavar="N", help="slots; -1: 4, sharing one context")
    option("-c", "--ctx-size", type=int, default=0, metavar="N", help="context of all slots together; 0: the model's")
    option("-t", "--threads", type=int, default=-1, metavar="N")
    option("-n", "--n-predict", type=int, default=-1, metavar="N", help="most tokens of an answer; -1: no limit")
    option("-kvu", "--kv-unified", action="store_true", default=None, dest="kv_unified")
    option("-no-kvu", "--no-kv-unified", action="store_false", dest="kv_unified")
    option("-cram", "--cache-ram", type=int, default=8192, metavar="MIB", help="prompt cache; -1: no limit, 0: none")
    option("--alias", metavar="NAME", help="name of the model in answers")
    option("--api-key-file", metavar="FILE", help="one key a line")
    option("--metrics", action="store_true", help="serve /metrics")
    option("--offline", action="store_true", help="never use the network for a model")
    option("--no-ui", action="store_true", help="serve no web page")
    option("--no-warmup", action="store_true", help="no trial run after loading")
    option("--log-colors", choices=["on", "off", "auto"], default="off", help="accepted; logs are never coloured")
    option("--version", action="store_true")
    return parser.parse_args(words)


def api_keys(arguments):
    keys = [key for key in os.environ.get("LLAMA_API_KEY", "").split(",") if key]
    if arguments.api_key_file:
        try:
            with open(arguments.api_key_file, encoding="utf-8") as lines:
                keys += [line.strip() for line in lines if line.strip()]
        except (OSError, UnicodeDecodeError) as problem:
            fail(f"cannot read --api-key-file {arguments.api_key_file}: {problem}")
        if not keys:
            fail(f"--api-key-file {arguments.api_key_file} holds no key")
    return keys


def parameters(xllamacpp, arguments, keys):
    params = xllamacpp.CommonParams()
    params.model.path = arguments.model
    params.hostnames = [arguments.host]
    params.port = arguments.port
    # As the real program: slots share the context only if nobody chose a number.
    params.n_parallel = arguments.parallel if arguments.parallel > 0 else 4
    unified = arguments.kv_unified
    params.kv_unified = arguments.parallel <= 0 if unified is None else unified
    params.n_ctx = arguments.ctx_size
    params.n_predict = arguments.n_predict
    if arguments.threads > 0:
        params.cpuparams.n_threads = arguments.threads
        params.cpuparams_batch.n_threads = arguments.threads
    params.cache_ram_mib = arguments.cache_ram
    if arguments.alias:
        params.model_alias = {arguments.alias}
    params.api_keys = keys
    params.endpoint_metrics = arguments.metrics
    params.endpoint_slots = True
    params.offline = arguments.offline
    params.ui = not arguments.no_ui
    params.warmup = not arguments.no_warmup
    params.use_color = False
    return params


def await_signal():
    """Blocks until SIGTERM or SIGINT. The C handler runs in any thread and writes
    to the pipe; a plain pause() in this one could miss it."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: None)
    os.read(reader, 1)


def main():
    # Python turns Ctrl-C into an exception, which could come only after loading.
    signal.signal(signal.SIGINT, signal.SIG_DFL)

    arguments = parse(sys.argv[1:])
    import xllamacpp

    if arguments.version:
        print(f"version: xllamacpp {xllamacpp.__version__} (llama.cpp in a Python wheel)")
        return
    if not arguments.model:
        fail("no model: give a GGUF file with --model")
    if not os.path.isfile(arguments.model):
        fail(f"no such model file: {arguments.model}")
    keys = api_keys(arguments)

    try:
        server = xllamacpp.Server(parameters(xllamacpp, arguments, keys))
    except (RuntimeError, MemoryError):
        fail(f"cannot serve {arguments.model}: the log above says why "
             "(not a GGUF file, too little memory, or the port is taken)")

    await_signal()
    print(f"llama-server: stopped, was {server.listening_address}", file=sys.stderr, flush=True)
    os._exit(0)


if __name__ == "__main__":
    sys.stdout.reconfigure(line_buffering=True)
    main()
