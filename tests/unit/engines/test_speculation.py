from pathlib import Path

import pytest

from pytest_llmperf.engines.speculation import acceptance
from pytest_llmperf.errors import DeathError
from pytest_llmperf.model.acceptance import Acceptance
from pytest_llmperf.model.counters import Counters
from pytest_llmperf.telemetry.prometheus import parse

METRICS = Path(__file__).parents[2] / "data" / "metrics"


def recorded(name: str) -> Counters:
    return parse((METRICS / f"{name}.txt").read_text())


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (
            "xllamacpp-2026.10_mtp_damaged30",
            Acceptance(steps=388, accepted=632, drafted=1156, per_position=(304, 208, 120)),
        ),
        ("vllm-0.32.0_mtp_damaged30", Acceptance(steps=312, accepted=456, drafted=936, per_position=(201, 144, 111))),
    ],
)
def test_counts_of_a_server_since_its_start(name: str, expected: Acceptance) -> None:
    assert acceptance({}, recorded(name)) == expected


def test_only_the_window_counts() -> None:
    after = recorded("vllm-0.32.0_mtp_damaged30")
    before = {series: value / 3 for series, value in after.items()}
    found = acceptance(before, after)
    assert found is not None
    assert (found.steps, found.accepted, found.drafted) == (208, 304, 624)
    assert found.per_position == (134, 96, 74)


def test_engines_of_one_server_are_added_up() -> None:
    one = recorded("vllm-0.32.0_mtp_damaged30")
    both = {**one} | {series.replace('engine="0"', 'engine="1"'): value for series, value in one.items()}
    found = acceptance({}, both)
    assert found is not None
    assert (found.steps, found.per_position) == (624, (402, 288, 222))


@pytest.mark.parametrize("name", ["vllm-0.32.0", "xllamacpp-2026.10", "sglang-0.5.16"])
def test_without_speculation_there_is_nothing_to_say(name: str) -> None:
    assert acceptance({}, recorded(f"{name}_no_speculation")) is None


def test_a_window_without_drafts_of_a_server_that_speculates_is_zero_and_not_unknown() -> None:
    counters = recorded("xllamacpp-2026.10_mtp_damaged30")
    assert acceptance(counters, counters) == Acceptance(steps=0, accepted=0, drafted=0, per_position=(0, 0, 0))


def test_a_restart_between_two_scrapes_is_no_measurement() -> None:
    before = recorded("xllamacpp-2026.10_mtp_damaged30")
    after = {series: value - 1 for series, value in before.items()}
    with pytest.raises(DeathError, match="went backwards"):
        acceptance(before, after)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_counter_that_is_no_count_says_nothing(value: float, when: str) -> None:
    counters = recorded("xllamacpp-2026.10_mtp_damaged30")
    broken = {**counters, next(series for series in counters if "accepted_tokens_total" in series): value}
    assert (acceptance(broken, counters) if when == "before" else acceptance(counters, broken)) is None
