"""The arithmetic of the benchmark of telemetry."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.benchmarks.telemetry import summary


def test_the_bound_is_students_of_the_logs() -> None:
    rng = np.random.default_rng(1)
    pairs = [(float(a), float(b)) for a, b in rng.normal((990, 1000), 5, size=(20, 2))]
    logs = np.log([a / b for a, b in pairs])
    low = stats.ttest_1samp(logs, 0).confidence_interval(0.90).low
    found = summary(pairs)
    assert found["loss_mean"] == pytest.approx(1 - np.exp(logs.mean()))
    assert found["loss_upper_95"] == pytest.approx(1 - np.exp(low))
    assert found["loss_lower_95"] < found["loss_mean"] < found["loss_upper_95"]
