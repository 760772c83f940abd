"""Clients side by side: ``python -m tests.benchmarks.clients SCENARIO...`` from the root of the repository."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tests.benchmarks.arena import Arena, Result
from tests.benchmarks.contenders import AiPerf, Floor, VllmFunction
from tests.benchmarks.native import program
from tests.benchmarks.scenarios import SCENARIOS, Bar, Contest, server_was_slow

_COLUMNS = ("client", "streams", "delivered", "us/chunk", "CPU", "chunks/s", "ITL median", "of server", "ITL p99",
            "of server", "TTFT", "TPOT", "E2EL", "tokens", "says")  # fmt: skip
_WIDTHS = (17, 7, 9, 8, 5, 9, 10, 9, 9, 9, 8, 8, 8, 8, 0)


def main() -> None:
    options = _options()
    machine = _machine()
    _say(", ".join(f"{key} {value}" for key, value in machine.items()))
    found: dict[str, Any] = {"machine": machine, "scenarios": {}}
    for name in options.scenarios:
        found["scenarios"][name] = _run(name, options)
        if options.out is not None:
            options.out.write_text(json.dumps(found, indent=1))


def _run(name: str, options: argparse.Namespace) -> dict[str, Any]:
    asked = {key: value for key in ("streams", "tokens", "workers") if (value := getattr(options, key)) is not None}
    _say(f"\n{name}")
    _say(_line(_COLUMNS))
    results, bars = [], []
    contest = _contest(options)
    try:
        for outcome in SCENARIOS[name](contest, **asked):
            if isinstance(outcome, Bar):
                bars.append(outcome)
            else:
                results.append(outcome)
                _say(_line(_cells(outcome, contest.arena)))
    except subprocess.SubprocessError as error:
        _say(f"{error}\n{error.output if isinstance(error, subprocess.CalledProcessError) else ''}")
    for bar in bars:
        _say(f"{'cleared' if bar.cleared else 'MISSED '}  {bar.claim}: {bar.found}")
    return {"results": [result.to_json() for result in results], "bars": [asdict(bar) for bar in bars]}


def _contest(options: argparse.Namespace) -> Contest:
    return Contest(
        arena=Arena(
            server=program("pace_server", options.programs),
            server_cores=options.server_cores,
            client_cores=options.client_cores,
        ),
        floor=Floor(program("stamp_client", options.programs)),
        vllm=VllmFunction(options.vllm) if options.vllm else None,
        aiperf=AiPerf(options.aiperf) if options.aiperf else None,
    )


def _cells(result: Result, arena: Arena) -> tuple[str, ...]:
    itl, true = result.seen.timings.itl, result.server.itl
    says = "; ".join(f"INVALID {reason}" for reason in result.seen.invalid)
    if server_was_slow(result, arena):
        says = f"(the server was late for {result.late_ticks} ticks) {says}"
    return (
        result.client,
        str(result.ask.streams),
        str(result.delivered),
        f"{result.us_per_chunk:.1f}",
        f"{result.cpu_s / result.wall_s:.0%}",
        f"{result.chunks_per_s:.0f}",
        f"{itl.median:.2f}",
        f"{true.median:.2f}",
        f"{itl.p99:.2f}",
        f"{true.p99:.2f}",
        *(f"{result.error(latency, 'mean'):+.1%}" for latency in ("ttft", "tpot", "e2el")),
        "exact" if result.seen.timings.tokens == result.server.tokens else str(result.seen.timings.tokens),
        says,
    )


def _line(cells: tuple[str, ...]) -> str:
    first, *others = zip(cells, _WIDTHS, strict=True)
    padded = [first[0].ljust(first[1]), *(cell.rjust(width) for cell, width in others)]
    return "  ".join(padded).rstrip()


def _machine() -> dict[str, Any]:
    model = next((line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), platform.machine())  # fmt: skip
    return {
        "date": f"{datetime.now(UTC):%Y-%m-%d %H:%M}",
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "load": f"{os.getloadavg()[0]:.1f}",
    }


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="tests.benchmarks.clients", description=__doc__)
    parser.add_argument("scenarios", nargs="*", choices=[*SCENARIOS], default=["cpu", "pace", "agreement"])
    parser.add_argument("--server-cores", type=_cores, default=[0], help="one thread of the server on each: 0-6")
    parser.add_argument("--client-cores", type=_cores, default=[1], help="for all processes of a client: 8-15")
    parser.add_argument("--vllm", type=Path, help="folder with the unzipped wheel and what its function imports")
    parser.add_argument("--aiperf", type=Path, help="virtual environment with AIPerf")
    parser.add_argument("--programs", type=Path, help="folder with the compiled programs, where there is no compiler")
    parser.add_argument("--streams", type=int, help="instead of the scenario's own number; cpu and agreement")
    parser.add_argument("--tokens", type=int, help="of each stream")
    parser.add_argument("--workers", type=int, help="of our client; scaling")
    parser.add_argument("--out", type=Path, help="write all figures there, as JSON")
    return parser.parse_args()


def _cores(text: str) -> list[int]:
    ranges = [part.partition("-") for part in text.split(",")]
    return [core for first, _, last in ranges for core in range(int(first), int(last or first) + 1)]


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 (a program of its own)


if __name__ == "__main__":
    main()
