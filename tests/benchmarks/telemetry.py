"""Does telemetry cost throughput? Pairs of runs with and without it, one after the other, against a running server.

On the machine with the GPU, beside the server, from the root of the repository:

    vllm serve MODEL --port 8000 &        # anything that speaks OpenAI's completions; wait until it is up
    python -m tests.benchmarks.telemetry --url http://127.0.0.1:8000 --pairs 20 --seconds 10 --out telemetry.json

It needs what the client needs (numpy, scipy, pydantic, orjson, uvloop, requests, prometheus-client, filelock, pyyaml)
and nvidia-ml-py; pytest is not needed, nor that the package is installed. It takes pairs * 2 * (seconds + about 4 s),
10 minutes for these. Nothing is changed on any GPU. Exit status 0 when the upper bound is within ``--limit``, 1 when it
is not, 2 when nothing could be measured.

A pair is one run with the product's own watch (two looks at the machine, and the sampler in between) and one without;
who comes first alternates, so that a drift cancels. Every run has prompts that the server has not seen, and as many
requests as fill ``--seconds``, whole rounds of ``--concurrency``. A run without waits beforehand for as long as a look
takes, so that the GPU was idle equally long. The loss of a pair is 1 - with/without, in output tokens per second of the
window; printed are the mean over pairs (in log) and the upper end of its one-sided 95 % interval by Student's t.
"""

from __future__ import annotations

import argparse
import json
import math
import secrets
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_llmperf import metrics
from pytest_llmperf.load import Capture, drive
from pytest_llmperf.model.endpoint import Endpoint
from pytest_llmperf.model.suite import Load, Workload
from pytest_llmperf.model.telemetry import Telemetry
from pytest_llmperf.stats import student
from pytest_llmperf.telemetry import nvml
from pytest_llmperf.telemetry.fetch import fetch
from pytest_llmperf.telemetry.samples_file import Sampled
from pytest_llmperf.telemetry.watch import Watch
from pytest_llmperf.workload.planner import plan

LIMIT = 0.01
_PROBABILITY = 0.95


@dataclass
class Bench:
    """What all runs have in common; ``idle_s`` is how long the last look at the machine took."""

    options: argparse.Namespace
    endpoint: Endpoint
    uuids: tuple[str, ...]
    idle_s: float = 0.0
    told: list[Telemetry] = field(default_factory=list)
    seen: list[Sampled] = field(default_factory=list)

    def watched(self, requests: int) -> float:
        """Output tokens per second of a run with telemetry."""
        with tempfile.TemporaryDirectory() as folder:
            begun = time.monotonic()
            with Watch(self.uuids, interval_s=self.options.interval_ms / 1000, folder=Path(folder)) as watch:
                self.idle_s = time.monotonic() - begun
                capture = self._drive(requests, Path(folder), watch.window)
            if watch.fault:
                raise SystemExit(f"telemetry: {watch.fault}")
            self.told.append(watch.telemetry(capture.window_ns))
            self.seen.append(watch.seen())
            return _throughput(capture)

    def alone(self, requests: int) -> float:
        """The same without."""
        time.sleep(self.idle_s)
        with tempfile.TemporaryDirectory() as folder:
            return _throughput(self._drive(requests, Path(folder), nullcontext))

    def _drive(self, requests: int, folder: Path, window: Any) -> Capture:
        options = self.options
        workload = Workload(
            name="words", kind="words", requests=requests, input_tokens=options.input, output_tokens=options.output
        )
        load = Load(kind="concurrency", value=options.concurrency)
        made = plan(workload, load, seed=secrets.randbits(47), model_id=self.endpoint.model)
        capture = drive(
            made, self.endpoint, folder, stall_timeout_s=60, request_timeout_s=300, alive=lambda: True, window=window
        )
        if capture.end != "complete" or not capture.records.ok.all():
            reasons = sorted({reason for reason in capture.records.reason if reason})[:3]
            raise SystemExit(f"the run ended as {capture.end}: {'; '.join(reasons)}")
        return capture


def main() -> int:
    options = _options()
    uuids = tuple(gpu.uuid for gpu in nvml.find())[: options.gpus]
    if not uuids:
        _say("no GPU is seen (nvidia-ml-py and a driver?): there is nothing to measure")
        return 2
    bench = Bench(options, Endpoint(url=options.url, model=options.model or _model(options.url)), uuids)
    requests = _requests(bench)
    _say(f"{bench.endpoint.model} at {options.url}, {len(uuids)} GPU(s), every {options.interval_ms:g} ms")
    _say(f"{requests} requests a run, {options.concurrency} in flight, {options.input} tokens in, {options.output} out")
    bench.watched(requests)  # one of each that does not count
    bench.alone(requests)
    bench.told.clear()
    bench.seen.clear()
    pairs = []
    for number in range(options.pairs):
        first = number % 2 == 0
        with_ = bench.watched(requests) if first else math.nan
        without = bench.alone(requests)
        with_ = with_ if first else bench.watched(requests)
        pairs.append((with_, without))
        _say(f"pair {number + 1:2}: with {with_:9.1f}  without {without:9.1f} tok/s  loss {1 - with_ / without:+.2%}")
    result = {**summary(pairs), **_sampling(bench), "requests": requests, "pairs": pairs}
    for key, value in result.items():
        if key != "pairs":
            _say(f"{key}: {value}")
    if options.out is not None:
        options.out.write_text(json.dumps({**result, "options": vars(options) | {"out": str(options.out)}}, indent=1))
    cleared = result["loss_upper_95"] <= options.limit
    _say(f"{'cleared' if cleared else 'MISSED'}: upper 95 % bound of the loss at most {options.limit:.1%}")
    return 0 if cleared else 1


def summary(pairs: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Mean loss of throughput over pairs (with, without), and the ends of its one-sided 95 % intervals."""
    logs = [math.log(with_ / without) for with_, without in pairs]
    count = len(logs)
    mean = sum(logs) / count
    deviation = math.sqrt(sum((each - mean) ** 2 for each in logs) / (count - 1))
    reach = student.isf(1 - _PROBABILITY, count - 1) * deviation / math.sqrt(count)
    return {
        "loss_mean": 1 - math.exp(mean),
        "loss_lower_95": 1 - math.exp(mean + reach),
        "loss_upper_95": 1 - math.exp(mean - reach),
        "deviation_of_a_pair": deviation,
    }


def _sampling(bench: Bench) -> dict[str, Any]:
    """How the sampling itself went, over all runs that count."""
    due = sum((told.ticks[1] - told.ticks[0]) * len(told.gpus) for told in bench.told)
    got = sum(len(gpu.samples) for told in bench.told for gpu in told.gpus)
    first = next(iter(bench.seen[-1].gpus.values()))
    return {
        "samples": f"{got} of {due}",
        "longest_look_ms": max(seen.longest_look_ns for seen in bench.seen) / 1e6,
        "look_at_the_machine_s": round(bench.idle_s, 2),
        "left_out": dict(first.left_out),
        "counters": bench.told[-1].gpus[0].after.source,
    }


def _requests(bench: Bench) -> int:
    """As many as fill the time: whole rounds of the concurrency, two at least. It also warms the server up."""
    concurrency = int(bench.options.concurrency)
    probe = 4 * concurrency
    bench.alone(concurrency)
    rate = bench.alone(probe) / int(bench.options.output)
    rounds = round(rate * float(bench.options.seconds) / concurrency)
    return max(rounds, 2) * concurrency


def _throughput(capture: Capture) -> float:
    return metrics.compute(capture.records, capture.window_ns, None)["output_throughput"]


def _model(url: str) -> str:
    reply = fetch("GET", f"{url}/v1/models", timeout_s=10)
    name: str = json.loads(reply.body)["data"][0]["id"]
    return name


def _say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 (a program of its own)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.telemetry")
    parser.add_argument("--url", required=True, help="base of the server, without /v1")
    parser.add_argument("--model", help="name that requests carry; default: the server's first")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--seconds", type=float, default=10.0, help="length of a run")
    parser.add_argument("--concurrency", type=int, default=64)
    parser.add_argument("--input", type=int, default=500, help="words of a prompt")
    parser.add_argument("--output", type=int, default=100, help="tokens of an answer")
    parser.add_argument("--interval-ms", type=float, default=500.0, help="of the sampler")
    parser.add_argument("--gpus", type=int, default=1, help="how many, from NVML's first")
    parser.add_argument("--limit", type=float, default=LIMIT, help="the largest loss that may be")
    parser.add_argument("--out", type=Path, help="a JSON file for everything")
    options = parser.parse_args()
    options.url = options.url.rstrip("/").removesuffix("/v1")
    return options


if __name__ == "__main__":
    sys.exit(main())
