"""What ``--llmperf-inject`` takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.errors import UsageError
from pytest_llmperf.model.injection import Injection, parse


@pytest.mark.parametrize(
    ("text", "injection"),
    [
        ("ttft=+20%", Injection("ttft", 0.2)),
        ("tpot=+10%", Injection("tpot", 0.1)),
        ("e2el=+156%", Injection("e2el", 1.56)),
        ("throughput=-10%", Injection("throughput", 0.1)),
        ("acceptance=-0.06", Injection("acceptance", 0.06)),
        ("stall", Injection("stall")),
        ("drop", Injection("drop")),
        ("error", Injection("error")),
    ],
)
def test_every_form_is_read_and_written_alike(text: str, injection: Injection) -> None:
    read = parse(text)
    assert read.kind == injection.kind
    assert read.share == pytest.approx(injection.share)
    assert str(read) == text


@given(st.sampled_from(["ttft", "tpot", "e2el", "throughput"]), st.integers(1, 999))
def test_what_is_written_can_be_read_again(kind: str, promille: int) -> None:
    injection = Injection(kind, promille / 1000)  # type: ignore[arg-type]
    assert parse(str(injection)).share == pytest.approx(injection.share, rel=1e-3)


@pytest.mark.parametrize(
    "text",
    [
        "", "ttft", "ttft=", "ttft=20%", "ttft=+20", "tpot=-10%", "throughput=+10%", "throughput=-100%", "ttft=+0%",
        "ttft=+1e9%", "ttft=+2000%", "stall=1", "slow=+10%", "acceptance=+0.1", "acceptance=-0", "acceptance=x",
        "acceptance=-nan", "acceptance=-inf", "drop=",
    ],
)  # fmt: skip
def test_what_is_no_loss_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--llmperf-inject="):
        parse(text)
