"""Delivered load: was the engine under the load that was asked for?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.records import NEVER, Int64, Records
from pytest_llmperf.model.suite import Load

SHORTFALL_LIMIT = 0.02
"""Share of the load that may be missing whatever the margin of a gate is."""

SHARE_OF_MARGIN = 0.25
"""Beyond that, a missing share of the load may be so much of a gate's margin."""

LATE_LIMIT_MS = 5.0
"""Sends may be late by this much however short the schedule is: as much as each of them may be by itself."""

_PLATEAU_IN_REQUESTS = 0.5
"""A plateau shorter than this share of a request shows the ends of a few requests and no concurrency."""

_NAMED = 5


@dataclass(frozen=True, slots=True)
class _Delivery:
    """What came of a load; ``broken`` where no margin can make it right."""

    value: str
    expected: str
    remedy: str
    shortfall: float = 0.0
    broken: bool = False


def delivered_load(
    records: Records,
    load: Load,
    window_ns: tuple[int, int],
    gates: Sequence[Gate],
    *,
    max_in_flight: int,
    turns: int = 1,
) -> Finding:
    """Whether the load was there, by the send and end times of all requests.

    Of a closed loop: never more in flight than asked, and on the plateau no less. The plateau begins when every lane
    has sent its first request, at the latest when the first one has ended, and ends when nothing waits for a lane any
    more (with the last send; of conversations, with that of the last first turn); what is in flight is averaged over
    it. Of an open loop: everything was sent, in the time that the schedule gives. Of a burst:
    everything was sent at once, measured against the window.

    A gate's metric is invalid when the share of the load that is missing is above ``SHORTFALL_LIMIT`` and above
    ``SHARE_OF_MARGIN`` of its margin.

    Args:
        records: of the whole run.
        load: as asked.
        window_ns: of the run.
        gates: those that are judged.
        max_in_flight: the most requests in flight at any moment.
        turns: requests of one conversation; lanes carry conversations.
    """
    timing = [gate for gate in gates if gate.metric.timing]
    delivery = _unsent(records) or _delivery(records, load, window_ns, max_in_flight, turns)
    wrong = timing if delivery.broken else [gate for gate in timing if delivery.shortfall > _allowed(gate)]
    return Finding(
        check="delivered_load",
        status=Status.FAIL if wrong or delivery.broken else Status.PASS,
        policy="require",
        value=delivery.value,
        expected=delivery.expected,
        evidence="send and end times of all requests",
        remedy=delivery.remedy,
        metrics=frozenset(gate.metric.name for gate in wrong),
    )


def _allowed(gate: Gate) -> float:
    return max(SHORTFALL_LIMIT, SHARE_OF_MARGIN * gate.margin)


def _delivery(records: Records, load: Load, window_ns: tuple[int, int], most: int, turns: int) -> _Delivery:
    if load.kind == "concurrency":
        return _closed(records, int(load.value or 0), most, turns)
    due = records.scheduled_ns != NEVER
    scheduled_ms, sent_ms = _span_ms(records.scheduled_ns[due]), _span_ms(records.sent_ns[due])
    if load.scheduled and scheduled_ms > 0:
        return _open(int(due.sum()), scheduled_ms, sent_ms)
    return _burst(int(due.sum()), sent_ms, (window_ns[1] - window_ns[0]) / 1e6)


def _unsent(records: Records) -> _Delivery | None:
    """Requests that were never sent, by their place in the plan."""
    unsent = np.flatnonzero(records.sent_ns == NEVER)
    if not len(unsent):
        return None
    more = f" and {len(unsent) - _NAMED} more" if len(unsent) > _NAMED else ""
    return _Delivery(
        value=f"{len(unsent)} of {len(records)} requests were not sent: {', '.join(map(str, unsent[:_NAMED]))}{more}",
        expected="all of them sent",
        remedy="the reasons of the failed requests say why",
        broken=True,
    )


def _closed(records: Records, asked: int, most: int, turns: int) -> _Delivery:
    starts_ns = np.sort(records.sent_ns[::turns])  # of the conversations, which lanes take up one by one
    lanes = min(asked, len(starts_ns))
    expected = f"{lanes} in flight" + (f": there are no more than {lanes} for the {asked} asked" * (lanes < asked))
    if most > lanes:
        return _Delivery(
            f"up to {most} in flight", f"{expected} at most", "this is a defect of the client: report it", broken=True
        )
    plateau = min(int(starts_ns[lanes - 1]), int(records.done_ns.min())), int(starts_ns[-1])
    request_ns = float((records.done_ns - records.sent_ns).mean())
    if plateau[1] - plateau[0] <= _PLATEAU_IN_REQUESTS * request_ns:
        delivered, over = float(most), "at most; too few requests for a plateau"
    else:
        delivered, over = _mean_in_flight(records, *plateau), f"on average over {(plateau[1] - plateau[0]) / 1e9:.3g} s"
    return _Delivery(
        value=f"{delivered:.4g} of {lanes} in flight, {over}",
        expected=f"{expected}, at least {1 - SHORTFALL_LIMIT:.0%} of it or all but a quarter of the margin",
        remedy="look for slow connects and for a proxy that limits connections; find what else uses the CPU",
        shortfall=1 - delivered / lanes,
    )


def _mean_in_flight(records: Records, start_ns: int, end_ns: int) -> float:
    """By Little's law: the time that all requests together were in flight in between / its length."""
    inside_ns = np.minimum(records.done_ns, end_ns) - np.maximum(records.sent_ns, start_ns)
    return float(inside_ns.clip(0).sum()) / (end_ns - start_ns)


def _open(count: int, scheduled_ms: float, sent_ms: float) -> _Delivery:
    asked, achieved = ((count - 1) / ms * 1e3 for ms in (scheduled_ms, max(sent_ms, 1e-6)))
    late = sent_ms - scheduled_ms > LATE_LIMIT_MS
    return _Delivery(
        value=f"{achieved:.4g} requests/s sent",
        expected=f"{asked:.4g} requests/s, as scheduled",
        remedy="find what else uses the CPU; with four cores or more the client has some of its own",
        shortfall=1 - achieved / asked if late else 0.0,
    )


def _burst(count: int, spread_ms: float, window_ms: float) -> _Delivery:
    return _Delivery(
        value=f"{count} requests sent within {spread_ms:.3g} ms",
        expected=f"all at once: within {LATE_LIMIT_MS:g} ms, {SHORTFALL_LIMIT:.0%} of the window, or a quarter of the "
        "margin of it",
        remedy="find what else uses the CPU; with four cores or more the client has some of its own",
        shortfall=spread_ms / window_ms if spread_ms > LATE_LIMIT_MS else 0.0,
    )


def _span_ms(times_ns: Int64) -> float:
    return float(times_ns.max() - times_ns.min()) / 1e6 if len(times_ns) else 0.0
