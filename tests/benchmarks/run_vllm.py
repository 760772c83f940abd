"""vLLM's own request function under its own session: ``run_vllm DIR URL ASK FOLDER``.

DIR holds the unzipped wheel and what the function imports (aiohttp, regex, tqdm); vLLM itself is not imported.
"""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.benchmarks.ask import Ask
from tests.benchmarks.timings import Latency, Timings

_FUNCTION = Path("vllm/benchmarks/lib/endpoint_request_func.py")


def main(home: Path, url: str, ask: Ask, folder: Path) -> None:
    sys.path.insert(0, str(home))
    outputs = asyncio.run(_benchmark(_module(home / _FUNCTION), url, ask))
    (folder / "seen.json").write_text(json.dumps({"timings": asdict(_timings(outputs)), "invalid": []}))


def _module(file: Path) -> Any:
    spec = importlib.util.spec_from_file_location("endpoint_request_func", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


async def _benchmark(vllm: Any, url: str, ask: Ask) -> list[Any]:
    """As ``vllm bench serve`` does it: its connector, its session, a semaphore where there is a maximum concurrency."""
    aiohttp = vllm.aiohttp
    limit = ask.streams if ask.requests else None
    connector = aiohttp.TCPConnector(
        limit=limit or 0,
        limit_per_host=limit or 0,
        ttl_dns_cache=300,
        use_dns_cache=True,
        keepalive_timeout=60,
        enable_cleanup_closed=True,
        force_close=False,
        ssl=False,
    )
    timeout = aiohttp.ClientTimeout(total=6 * 60 * 60)
    turnstile = asyncio.Semaphore(ask.streams)

    async def one(number: int) -> Any:
        asked = vllm.RequestFuncInput(
            prompt=f"people {number}",
            api_url=f"{url}/v1/completions",
            prompt_len=16,
            output_len=ask.tokens,
            model="pace",
            ignore_eos=True,
        )
        async with turnstile:
            return await vllm.async_request_openai_completions(asked, session)

    async with aiohttp.ClientSession(connector=connector, trust_env=True, timeout=timeout) as session:
        return list(await asyncio.gather(*(one(number) for number in range(ask.total))))


def _timings(outputs: list[Any]) -> Timings:
    """``calculate_metrics`` of ``vllm bench serve``, over the successful requests."""
    good = [output for output in outputs if output.success]
    return Timings(
        streams=len(good),
        tokens=sum(output.output_tokens for output in good),
        ttft=Latency.of([1e3 * output.ttft for output in good]),
        tpot=Latency.of([1e3 * (output.latency - output.ttft) / (output.output_tokens - 1) for output in good]),
        itl=Latency.of([1e3 * gap for output in good for gap in output.itl]),
        e2el=Latency.of([1e3 * output.latency for output in good]),
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Ask(**json.loads(sys.argv[3])), Path(sys.argv[4]))
