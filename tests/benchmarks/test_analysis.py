"""The analysis beside parsing alone: once, on a small size, unless ``--benchmark-enable`` is given (README.md here)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
import orjson
import pytest

from tests.benchmarks import analysis


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    sizes = analysis.SIZES if metafunc.config.getoption("benchmark_enable") else analysis.SIZES[:1]
    metafunc.parametrize("chunks", sizes, ids="{:_}".format)


def test_analysis(benchmark: Any, chunks: int, tmp_path: Path) -> None:
    def setup() -> tuple[Any, Any]:
        job, exchanges = analysis.captured(chunks)
        return (job, exchanges, tmp_path), {}

    def analyse(*captured: Any) -> dict[str, float]:
        return analysis.computed(analysis.parsed(*captured))

    benchmark.group = f"{chunks:_} chunks"
    values = benchmark.pedantic(analyse, setup=setup, rounds=3)
    streams = chunks // 1000
    assert values["max_concurrent_requests"] == streams
    assert values["mean_itl_ms"] == 20.0
    assert values["output_throughput"] == pytest.approx(chunks / (20.04 + (streams - 1) * 1e-6), rel=1e-3)


@pytest.mark.parametrize("loads", [orjson.loads, msgspec.json.decode], ids=["orjson", "msgspec"])
def test_parsing_alone(benchmark: Any, chunks: int, loads: Callable[[bytes], Any]) -> None:
    def setup() -> tuple[Any, Any]:
        return ([analysis.fresh(analysis.datas()) for _ in range(chunks // 1000)],), {}

    def parse(streams: Sequence[Sequence[bytes]]) -> int:
        return sum(bool(loads(data)) for datas in streams for data in datas)

    benchmark.group = f"{chunks:_} chunks"
    assert benchmark.pedantic(parse, setup=setup, rounds=3) == chunks + chunks // 1000
