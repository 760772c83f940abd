"""The clients that are compared: the command of each, and how what it says is read."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from tests.benchmarks.ask import Ask
from tests.benchmarks.timings import Latency, Timings

_TOKENIZER = Path(__file__).parents[1] / "data" / "tokenizers" / "bytelevel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A client's own report.

    Attributes:
        invalid: why its result must not be used, in its own words; only ours ever says so.
        client: of ours, its measurements of itself.
    """

    timings: Timings
    invalid: Sequence[str] = ()
    client: dict[str, Any] = field(default_factory=dict)


class Contender(Protocol):
    @property
    def name(self) -> str: ...

    def command(self, ask: Ask, port: int, folder: Path) -> list[str]: ...

    def read(self, folder: Path) -> Seen: ...


@dataclass(frozen=True)
class Ours:
    name: str = "pytest-llmperf"

    def command(self, ask: Ask, port: int, folder: Path) -> list[str]:
        return [sys.executable, "-m", "tests.benchmarks.run_ours", _url(port), _json(ask), str(folder)]

    def read(self, folder: Path) -> Seen:
        return _seen(folder)


@dataclass(frozen=True)
class VllmFunction:
    """The request function of ``vllm bench serve`` out of ``home``, where its wheel is unzipped."""

    home: Path
    name: str = "vllm bench serve"

    def command(self, ask: Ask, port: int, folder: Path) -> list[str]:
        return [sys.executable, "-m", "tests.benchmarks.run_vllm", str(self.home), _url(port), _json(ask), str(folder)]

    def read(self, folder: Path) -> Seen:
        return _seen(folder)


@dataclass(frozen=True)
class AiPerf:
    """AIPerf in its own environment, with its own settings; only what it would download or draw is switched off."""

    venv: Path
    name: str = "aiperf"

    def command(self, ask: Ask, port: int, folder: Path) -> list[str]:
        options = {
            "--model": "pace",
            "--url": _url(port),
            "--endpoint-type": "completions",
            "--tokenizer": _TOKENIZER,
            "--concurrency": ask.streams,
            "--request-count": ask.total,
            "--isl": 16,
            "--osl": ask.tokens,
            "--ui": "none",
            "--artifact-dir": folder,
        }
        flags = ["--streaming", "--use-server-token-count", "--no-server-metrics", "--no-gpu-telemetry"]
        words = [str(word) for option in options.items() for word in option]
        return [str(self.venv / "bin" / "aiperf"), "profile", *words, *flags]

    def read(self, folder: Path) -> Seen:
        """Its inter-token latency is what others call TPOT, its inter-chunk latency their ITL."""
        told = json.loads((folder / "profile_export_aiperf.json").read_text())

        def latency(name: str) -> Latency:
            metric = told[name]
            assert metric["unit"] == "ms", metric
            return Latency(metric["avg"], metric["p50"], metric["p99"])

        timings = Timings(
            streams=round(told["request_count"]["avg"]),
            tokens=round(told["total_output_tokens"]["avg"]),
            ttft=latency("time_to_first_token"),
            tpot=latency("inter_token_latency"),
            itl=latency("inter_chunk_latency"),
            e2el=latency("request_latency"),
        )
        return Seen(timings=timings)


@dataclass(frozen=True)
class Floor:
    """``stamp_client.c``."""

    binary: Path
    name: str = "floor in C"

    def command(self, ask: Ask, port: int, folder: Path) -> list[str]:
        assert ask.total == ask.streams, "the floor sends every request at once"
        return [str(self.binary), str(port), str(ask.streams), str(ask.tokens), str(folder / "floor.log")]

    def read(self, folder: Path) -> Seen:
        return Seen(timings=Timings.of_log(folder / "floor.log", others=2))


def _url(port: int) -> str:
    return f"http://127.0.0.1:{port}"


def _json(ask: Ask) -> str:
    return json.dumps(asdict(ask))


def _seen(folder: Path) -> Seen:
    told = json.loads((folder / "seen.json").read_text())
    return Seen(timings=Timings.from_json(told["timings"]), invalid=told["invalid"], client=told.get("client", {}))
