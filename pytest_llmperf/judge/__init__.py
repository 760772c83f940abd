"""The judge: a reference, a candidate and gates in, one verdict per gate out; pure and deterministic.

Everything that compares is this one call; only where the reference comes from differs. A run is the unit: one value per
metric and run, never a request. docs/verdicts.md explains the procedure and what is known of its error rates.
"""

from pytest_llmperf.judge.calibration import auto_margin, calibrate, calibrated, ungated, visible
from pytest_llmperf.judge.confirmation import confirm, cut_short, unconfirmed
from pytest_llmperf.judge.failures import failures
from pytest_llmperf.judge.looks import LOOKS, SINGLE, TURNS, Look
from pytest_llmperf.judge.published import beside
from pytest_llmperf.judge.verdicts import alternating, judge, open_turns, refuse, sequential, undecided, void
from pytest_llmperf.judge.words import provisional

__all__ = [
    "LOOKS", "SINGLE", "TURNS", "Look", "alternating", "auto_margin", "beside", "calibrate", "calibrated", "confirm",
    "cut_short", "failures", "judge", "open_turns", "provisional", "refuse", "sequential", "unconfirmed", "undecided",
    "ungated", "visible", "void",
]  # fmt: skip
