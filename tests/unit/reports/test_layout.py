from __future__ import annotations

import pytest

from pytest_llmperf.reports.layout import aligned, number


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.00123, "0.001"), (1.5, "1.500"), (31.26, "31.26"), (718.24, "718.2"), (100412.0, "100412"), (0.0, "0.000")],
)
def test_numbers_have_four_digits(value: float, text: str) -> None:
    assert number(value) == text


def test_cells_stand_below_each_other_and_empty_columns_are_left_out() -> None:
    rows = [("a", "", "1.5"), ("long", "", "22")]
    assert list(aligned(rows)) == ["a      1.5", "long   22"]
    assert list(aligned(rows, right={2})) == ["a      1.5", "long    22"]
