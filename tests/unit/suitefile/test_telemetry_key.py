"""``telemetry:`` of a suite."""

from __future__ import annotations

import pytest

from pytest_llmperf.errors import SuiteError
from tests.unit.suitefile.conftest import BASE, Load


@pytest.mark.parametrize(
    ("text", "interval_s"),
    [
        ("", 0.5),
        ("telemetry: off\n", None),
        ("telemetry: {interval: 200ms}\n", 0.2),
        ("telemetry: {interval: 100ms}\n", 0.1),
    ],
)
def test_what_it_may_be(load: Load, text: str, interval_s: float | None) -> None:
    assert load(BASE + text).telemetry_interval_s == interval_s


def test_it_can_be_left_out_for_one_session(load: Load) -> None:
    assert load(BASE, overrides={"telemetry": "off"}).telemetry_interval_s is None


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("telemetry: {interval: 99ms}\n", "must be at least 100ms"),
        ("telemetry: on\n", "must be off, or {interval: 500ms}"),
        ("telemetry: {every: 1s}\n", "every"),
        ("telemetry: {interval: 0.5}\n", "interval"),
    ],
)
def test_what_it_may_not_be(load: Load, text: str, complaint: str) -> None:
    with pytest.raises(SuiteError, match=complaint.replace("{", "[{]")):
        load(BASE + text)
