"""Concurrency: how many requests were between send and end, over all that were sent, failed ones included."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pytest_llmperf.model.records import NEVER, Records


def max_in_flight(records: Records) -> int:
    """The most at any moment; at equal times an end comes first. 0 when none was sent."""
    sent = _sent(records)
    times = np.concatenate([records.sent_ns[sent], records.done_ns[sent]])
    steps = np.concatenate([np.ones(np.count_nonzero(sent)), -np.ones(np.count_nonzero(sent))])
    order = np.lexsort((steps, times))
    return int(np.cumsum(steps[order]).max(initial=0))


def mean_in_flight(records: Records, window_ns: tuple[int, int]) -> float:
    """Over the window, which holds all of them; by Little's law the sum of their times / its length."""
    sent = _sent(records)
    return float((records.done_ns - records.sent_ns)[sent].sum()) / (window_ns[1] - window_ns[0])


def _sent(records: Records) -> npt.NDArray[np.bool_]:
    sent: npt.NDArray[np.bool_] = (records.sent_ns != NEVER) & (records.done_ns != NEVER)
    return sent
