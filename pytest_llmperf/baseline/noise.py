"""The calibration in a baseline file: one line per metric, written as people say it and read back exactly.

::

    calibration:
      made: {on: 2026-11-30, commit: 4e0a037, sessions: 12, runs: 24, replays: 12, red: 0}
      output_throughput:    {cv: 0.271 %, limit: 0.398 %, rho: 0.36, rho_90: [0, 0.93], lag_1: 0.1,
                             smallest: {1: 1.5 %, 3: 1.1 %, 5: 0.98 %}, margin: 2 %, red: 0}      # on one line

Shares are in per cent, sizes of absolute metrics in their unit; what is unknown is left out.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterator
from dataclasses import replace
from datetime import date
from decimal import Decimal, InvalidOperation

from yaml.nodes import MappingNode, Node, SequenceNode

from pytest_llmperf.baseline.document import Document
from pytest_llmperf.baseline.scalar import flow, number, scalar
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.calibration import MARGINS, Calibration, Noise

MADE = ("sessions", "runs", "replays", "red")
NOISE = ("cv", "limit", "smallest", "margin", "red")
OPTIONAL = ("rho", "rho_90", "lag_1")
NONE = "none"
"""A margin where even the largest could not be seen."""

NAME_WIDTH = 24
"""Column of the values: fixed, so that a new metric adds one line and moves none."""
LARGEST = 1000.0
"""Of a size of noise: ten thousand times what any metric has had; what cannot be seen at all is that, too."""
MOST_RUNS = 1000

_AGAIN = "write it with `llmperf calibrate --store`"


def lines(calibration: Calibration) -> Iterator[str]:
    """The block, as ``read`` takes it."""
    made = {
        **({} if calibration.on is None else {"on": calibration.on.isoformat()}),
        "commit": scalar(calibration.commit),
        "sessions": str(calibration.sessions),
        "runs": str(calibration.runs),
        "replays": str(calibration.replays),
        "red": str(calibration.red_replays),
    }
    yield "calibration:"
    yield f"  {'made: ':<{NAME_WIDTH}}{flow(made)}"
    for noise in sorted(calibration.noise, key=lambda each: each.metric):
        yield f"  {noise.metric + ': ':<{NAME_WIDTH}}{flow(_written(noise))}"


def rounded(calibration: Calibration, digits: int = 4) -> Calibration:
    """As a file keeps it: by name, with ``digits`` significant digits, at most ``LARGEST``, without correlations."""

    def short(value: float) -> float:
        return float(f"{min(value, LARGEST):.{digits}g}")

    def maybe(value: float | None) -> float | None:
        return None if value is None or math.isnan(value) else short(value)

    noise = tuple(
        replace(
            each,
            cv=short(each.cv),
            cv_limit=short(each.cv_limit),
            # Chance may put the estimate of a small share below nothing.
            session_share=None if each.session_share is None else maybe(max(0.0, each.session_share)),
            session_share_interval=None
            if each.session_share_interval is None
            else (short(each.session_share_interval[0]), short(each.session_share_interval[1])),
            autocorrelation=maybe(each.autocorrelation),
            visible=tuple((runs, short(loss)) for runs, loss in each.visible),
        )
        for each in sorted(calibration.noise, key=lambda each: each.metric)
    )
    return replace(calibration, noise=noise, correlations=())


def _written(noise: Noise) -> dict[str, str]:
    percent = METRICS[noise.metric].scale == "ratio"
    written = {"cv": _size(noise.cv, percent=percent), "limit": _size(noise.cv_limit, percent=percent)}
    if noise.session_share is not None:
        written["rho"] = number(noise.session_share)
    if noise.session_share_interval is not None:
        written["rho_90"] = f"[{', '.join(map(number, noise.session_share_interval))}]"
    if noise.autocorrelation is not None:
        written["lag_1"] = number(noise.autocorrelation)
    smallest = {str(runs): _size(loss, percent=percent) for runs, loss in noise.visible}
    margin = NONE if noise.margin is None else _size(noise.margin, percent=percent)
    return {**written, "smallest": flow(smallest), "margin": margin, "red": str(noise.false_alarms)}


def _size(value: float, *, percent: bool) -> str:
    """Exact: the shortest decimal of the number, its point moved by two places for per cent."""
    decimal = Decimal(repr(value))
    return f"{decimal.scaleb(2).normalize():f} %" if percent else number(value)


def read(document: Document, node: Node, metrics: Container[str]) -> Calibration:
    """The calibration in a file that has ``metrics``; mistakes are noted in ``document``."""
    parts = document.mapping(node, "calibration", ("made", *METRICS), ("made",), remedy=_AGAIN)
    path = "calibration.made"
    made = (
        document.mapping(parts["made"], path, ("on", "commit", *MADE), MADE, remedy=_AGAIN) if "made" in parts else {}
    )
    counts = {key: document.count(made[key], f"{path}.{key}", least=0) for key in MADE if key in made}
    if counts.keys() >= {"replays", "red"} and counts["red"] > counts["replays"]:
        document.wrong(made["red"], f"{path}.red", f"{counts['red']} of {counts['replays']} replays cannot be red")
    if counts.keys() >= {"sessions", "runs"} and not 2 <= counts["sessions"] <= counts["runs"]:  # noqa: PLR2004
        document.wrong(made["sessions"], f"{path}.sessions", "a calibration has two or more, each with a run")
    named = {name: each for name, each in parts.items() if name != "made"}
    if "made" in parts and not named:
        document.wrong(node, "calibration", f"has no metric; {_AGAIN}, or remove it")
    for name, each in named.items():
        if name not in metrics:
            document.wrong(each, f"calibration.{name}", "the file has no such metric; remove the line")
    noise = (_noise(document, each, name, counts.get("replays")) for name, each in sorted(named.items()))
    day: date | None = document.day(made["on"], f"{path}.on") if "on" in made else None
    commit = document.text(made["commit"], f"{path}.commit") if "commit" in made else "unknown"
    return Calibration(
        sessions=counts.get("sessions", 0), runs=counts.get("runs", 0), noise=tuple(noise),
        replays=counts.get("replays", 0), red_replays=counts.get("red", 0), on=day, commit=commit,
    )  # fmt: skip


def _noise(document: Document, node: Node, name: str, replays: int | None) -> Noise:
    path, percent = f"calibration.{name}", METRICS[name].scale == "ratio"
    found = document.mapping(node, path, (*NOISE, *OPTIONAL), NOISE, remedy=_AGAIN)

    def size(key: str) -> float:
        return _read_size(document, found[key], f"{path}.{key}", percent=percent) if key in found else 0.0

    cv, limit = size("cv"), size("limit")
    if limit < cv and {"cv", "limit"} <= found.keys():
        document.wrong(found["limit"], f"{path}.limit", "is the upper limit of cv and cannot be below it")
    unmargined = "margin" in found and document.plain(found["margin"]) == NONE
    margin = None if unmargined else size("margin")
    if margin is not None and "margin" in found and margin not in MARGINS:
        known = ", ".join(_size(each, percent=percent) for each in MARGINS)
        document.wrong(found["margin"], f"{path}.margin", f"must be one of {known}, or {NONE}")
    return Noise(
        metric=name,
        cv=cv,
        cv_limit=limit,
        session_share=_read_part(document, found["rho"], f"{path}.rho", 0) if "rho" in found else None,
        session_share_interval=_interval(document, found["rho_90"], f"{path}.rho_90") if "rho_90" in found else None,
        autocorrelation=_read_part(document, found["lag_1"], f"{path}.lag_1", -1) if "lag_1" in found else None,
        visible=_visible(document, found["smallest"], f"{path}.smallest", percent=percent)
        if "smallest" in found
        else (),
        margin=margin,
        false_alarms=document.count(found["red"], f"{path}.red", least=0, most=replays) if "red" in found else 0,
    )


def _visible(document: Document, node: Node, path: str, *, percent: bool) -> tuple[tuple[int, float], ...]:
    from pytest_llmperf.judge import LOOKS  # noqa: PLC0415 (scipy comes with it; most files have no calibration)

    if not isinstance(node, MappingNode) or not node.value:
        document.wrong(node, path, "must say the smallest loss by number of runs, such as {1: 1.5 %, 3: 1.1 %}")
        return ()
    document.mapping(node, path, None, [str(look.runs) for look in LOOKS], remedy=_AGAIN)
    return tuple(
        (
            document.count(runs, path, least=1, most=MOST_RUNS),
            _read_size(document, loss, f"{path}.{document.plain(runs)}", percent=percent),
        )
        for runs, loss in node.value
    )


def _read_size(document: Document, node: Node, path: str, *, percent: bool) -> float:
    """The number that ``_size`` wrote."""
    written = document.plain(node)
    try:
        decimal = Decimal(written.removesuffix(" %"))
        value = float(decimal.scaleb(-2) if percent else decimal) if decimal.is_finite() else -1.0
    except InvalidOperation:
        value = -1.0
    if not 0 <= value <= LARGEST or percent != written.endswith(" %"):
        usual = "a percentage such as 0.4 %" if percent else "a number in the metric's unit, such as 0.02"
        document.wrong(node, path, f"{written!r} must be {usual}, 0 or more")
        return 0.0
    return value


def _read_part(document: Document, node: Node, path: str, least: int) -> float:
    written = document.plain(node)
    try:
        value = float(written)
    except ValueError:
        value = math.nan
    if not least <= value <= 1:
        document.wrong(node, path, f"{written!r} must be a number from {least} to 1")
        return 0.0
    return value


def _interval(document: Document, node: Node, path: str) -> tuple[float, float]:
    ends = node.value if isinstance(node, SequenceNode) else []
    if len(ends) != 2:  # noqa: PLR2004
        document.wrong(node, path, "must be the two ends of an interval, such as [0.1, 0.7]")
        return 0.0, 1.0
    low, high = (_read_part(document, end, path, 0) for end in ends)
    if low > high:
        document.wrong(node, path, "must have its low end first")
    return low, high
