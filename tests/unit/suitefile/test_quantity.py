from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.suitefile.quantity import Quantity, quantity, seconds


@pytest.mark.parametrize(
    ("text", "value"), [("500ms", 0.5), ("5s", 5.0), ("40m", 2400.0), ("2h", 7200.0), ("1.5 h", 5400.0)]
)
def test_durations(text: str, value: float) -> None:
    assert seconds(text) == pytest.approx(value)


@pytest.mark.parametrize(
    "wrong", [40, 5.0, "40", "s", "5 min", "-5s", "0s", "5s\n", "1e3s", "9" * 400 + "h", True, None, []]
)
def test_no_durations(wrong: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        seconds(wrong)


@pytest.mark.parametrize(
    ("written", "share", "text"),
    [("40%", 0.4, "40%"), ("3 %", 0.03, "3%"), ("0.4%", 0.004, "0.4%"), (0.03, 0.03, "0.03"), (0, 0.0, "0")],
)
def test_quantities(written: object, share: float, text: str) -> None:
    assert quantity(written).share == pytest.approx(share)
    assert str(quantity(written)) == text


@pytest.mark.parametrize("wrong", ["40", "x%", "%", "-3%", True, None, [], float("inf"), float("nan")])
def test_no_quantities(wrong: object) -> None:
    with pytest.raises(ValueError, match="must be"):
        quantity(wrong)


@given(st.integers(1, 10**6), st.sampled_from(["ms", "s", "m", "h"]))
def test_a_duration_is_its_number_times_its_unit(number: int, unit: str) -> None:
    assert seconds(f"{number}{unit}") == pytest.approx(number * {"ms": 0.001, "s": 1, "m": 60, "h": 3600}[unit])


@given(st.floats(0, 1e6))
def test_a_number_is_taken_as_it_is(number: float) -> None:
    assert quantity(number) == Quantity(number, percent=False)
