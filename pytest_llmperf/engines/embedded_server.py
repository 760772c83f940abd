"""The process of the embedded engine: llama.cpp's own HTTP server, out of the ``xllamacpp`` wheel.

::

    python -m pytest_llmperf.engines.embedded_server --model FILE --alias ID --address-file FILE [...]

It ends by itself when its standard input does, that is when whoever started it is gone, even by SIGKILL (while it loads
a model: when that is over, for loading holds the interpreter). SIGTERM ends it at once. Everything it says goes to the
log, its address to ``--address-file`` once it can serve.
"""

from __future__ import annotations

import argparse
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xllamacpp import CommonParams


_PROMPTS_MIB = 256
"""Thousands of prompts of the tiny model."""


def main() -> None:
    """Serve until stdin ends."""
    arguments = _parser().parse_args()
    watcher = threading.Thread(target=_end_with_stdin, daemon=True)
    watcher.start()
    from xllamacpp import Server  # noqa: PLC0415 (the command line is checked first)

    try:
        server = Server(_parameters(arguments))
    except RuntimeError as error:
        raise SystemExit(f"the server did not start: {error}") from None
    _publish(arguments.address_file, server.listening_address)
    watcher.join()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="embedded_server",
        allow_abbrev=False,
        description="Serve a GGUF model until standard input is closed; by hand: sleep infinity | python -m ...",
    )
    parser.add_argument("--model", required=True, help="GGUF file")
    parser.add_argument("--alias", required=True, help="model id of the API")
    parser.add_argument("--address-file", required=True, type=Path, help="written once the server can serve")
    parser.add_argument("--port", type=int, default=0, help="0: the kernel gives one")
    parser.add_argument("--speculative-tokens", type=int, default=0, help="tokens per MTP draft; 0: no speculation")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--parallel", type=int, default=4, help="requests served at once; the others wait")
    parser.add_argument("--context", type=int, default=4096, help="tokens per request, prompt and answer")
    parser.add_argument("--prompt-cache", action="store_true", help="keep prompts that were seen, to answer them again")
    return parser


def _parameters(arguments: argparse.Namespace) -> CommonParams:
    from xllamacpp import CommonParams, common_speculative_type  # noqa: PLC0415

    params = CommonParams()
    params.model.path = arguments.model
    params.model_alias = {arguments.alias}
    params.hostnames = ["127.0.0.1"]
    params.port = arguments.port
    params.n_parallel = arguments.parallel
    params.n_ctx = arguments.context * arguments.parallel
    params.endpoint_metrics = True
    params.fit_params = False
    params.ui = False
    # Without it a repeated prompt costs what a new one costs. A slot remembers one prompt, the memory all others.
    params.cache_prompt = arguments.prompt_cache
    params.cache_ram_mib = _PROMPTS_MIB if arguments.prompt_cache else 0
    if arguments.speculative_tokens:
        params.speculative.types = [common_speculative_type.COMMON_SPECULATIVE_TYPE_DRAFT_MTP]
        params.speculative.draft.n_max = arguments.speculative_tokens
    draft = params.speculative.draft
    for cpu in (params.cpuparams, params.cpuparams_batch, draft.cpuparams, draft.cpuparams_batch):
        cpu.n_threads = arguments.threads
    return params


def _publish(path: Path, address: str) -> None:
    """Atomically: whoever sees the file reads a whole address."""
    fresh = path.with_suffix(".new")
    fresh.write_text(address)
    fresh.replace(path)


def _end_with_stdin() -> None:
    while os.read(0, 4096):
        pass
    os.write(2, b"standard input is closed: whoever started this server is gone, so it ends\n")
    # Not sys.exit: open streams would hold the server's destructor back.
    os._exit(0)


if __name__ == "__main__":
    main()
