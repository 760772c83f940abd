"""Saved runs as lines for a terminal, and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev

from pytest_llmperf import __version__
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.review import Difference, Review
from pytest_llmperf.reports.layout import aligned, number
from pytest_llmperf.reports.terminal import ALSO_SHOWN

SCHEMA = 1
"""Of the JSON document; raised when a reader of an older one would misread a newer one."""

MOST_REASONS = 10
MOST_NAMED = 3
STATISTICS = ("mean", "median", "p90", "p95", "p99")


def render_run(review: Review) -> list[str]:
    """The block of one run; the first line is its id, the others are indented."""
    return [review.id, *(f"  {line}" for line in _body(review))]


def render_cases(reviews: Sequence[Review]) -> list[str]:
    """A block for each case, arm and role, with the spread of its runs; then what is wrong with single runs."""
    groups: dict[tuple[str, str, str, str], list[Review]] = {}
    for review in reviews:
        groups.setdefault((review.suite, review.case, review.arm, review.role), []).append(review)
    lines: list[str] = []
    for (suite, case, arm, role), runs in groups.items():
        sessions = len({run.session for run in runs})
        lines.append(f"{suite}: {case}, arm {arm}, {role}: {_count(len(runs), 'run')} of {_count(sessions, 'server')}")
        lines += [f"  {line}" for line in _spread(runs)]
    for review in reviews:
        lines += [f"{review.id}: {trouble}" for trouble in _troubles(review)]
    return lines


def render_json(reviews: Sequence[Review], unreadable: Mapping[str, str]) -> str:
    """``{"schema", "pytest_llmperf", "runs": [...], "unreadable": {folder: why}}``."""
    document = {
        "schema": SCHEMA,
        "pytest_llmperf": __version__,
        "runs": [review.to_dict() for review in reviews],
        "unreadable": dict(unreadable),
    }
    return json.dumps(document, indent=1, sort_keys=True) + "\n"


def _body(review: Review) -> Iterator[str]:
    yield from aligned(list(_facts(review)))
    yield from _latencies(review.values)
    yield from _others(review.values)
    yield from (f"check {finding}: {finding.status}" for finding in review.findings)
    yield from (_difference(difference) for difference in review.differences)
    yield from _reread(review)


def _facts(review: Review) -> Iterator[tuple[str, str]]:
    yield "case", f"{review.suite}: {review.case}, arm {review.arm}, {review.role} {review.order + 1}"
    yield "server", review.session
    yield "started", review.started
    yield "requests", _outcomes(review)
    yield from (("", f"{count} x {reason}") for reason, count in list(review.reasons.items())[:MOST_REASONS])
    if (more := len(review.reasons) - MOST_REASONS) > 0:
        yield "", f"and {_count(more, 'other reason')}"
    if any(review.token_source.values()):
        yield "tokens", "; ".join(f"{what} by {_sources(told)}" for what, told in review.token_source.items())
    client = review.client
    fared = (
        f"{_count(client.workers, 'worker')}, the busiest at {client.cpu_share:.0%} of a core; lag p50"
        f" {client.lag_p50_ms:.2f}, p99 {client.lag_p99_ms:.2f}, most {client.lag_max_ms:.2f} ms;"
        f" {client.max_in_flight} in flight at most"
    )
    yield "client", fared
    if client.schedule_lag_p99_ms is not None:
        yield "", f"sent late by {client.schedule_lag_p99_ms:.2f} ms (p99)"
    if (counts := review.acceptance) is not None:
        kind = " (synthetic)" if counts.synthetic else ""
        yield "acceptance", f"{counts.accepted} of {counts.drafted} drafted, {counts.steps} steps{kind}"
    if review.slo:
        yield "slo", review.slo


def _outcomes(review: Review) -> str:
    others = [f"{count} {name.replace('_', ' ')}" for name, count in review.outcomes.items() if name != "ok"]
    return ", ".join([f"{review.outcomes.get('ok', 0)} of {review.requests} ok", *others])


def _sources(told: Mapping[str, int]) -> str:
    words = [f"{'nobody' if name == 'none' else name.replace('_', ' ')} ({count})" for name, count in told.items()]
    return ", ".join(words) or "nobody"


def _latencies(values: Mapping[str, float]) -> Iterator[str]:
    """One row for each latency, one column for each statistic; nothing where there are none."""
    names = dict.fromkeys(name.partition("_")[2] for name in METRICS if METRICS[name].unit == "ms" and name in values)
    rows = [
        (name.removesuffix("_ms"), *(_value(values.get(f"{statistic}_{name}")) for statistic in STATISTICS), "ms")
        for name in names
    ]
    if rows:
        yield from aligned([("", *STATISTICS, ""), *rows], right=range(1, 1 + len(STATISTICS)))


def _others(values: Mapping[str, float]) -> Iterator[str]:
    rows = [
        (name, number(values[name]), metric.unit)
        for name, metric in METRICS.items()
        if name in values and metric.unit != "ms"
    ]
    if rows:
        yield from aligned(rows)


def _value(value: float | None) -> str:
    return "" if value is None else number(value)


def _difference(difference: Difference) -> str:
    stored, now = ("unknown" if figure is None else repr(figure) for figure in (difference.stored, difference.now))
    return f"differs: {difference.name}: stored {stored}, by the columns {now}"


def _reread(review: Review) -> Iterator[str]:
    read = review.rereading
    if read is None:
        return
    counts = ", ".join(f"{name} ({count})" for name, count in read.differing.items())
    outcome = f"differ from the columns: {counts}; {read.first}" if counts else "as in the columns"
    yield f"raw responses, parsed again: {read.responses} of {review.requests}, {outcome}"


def _spread(runs: Sequence[Review]) -> Iterator[str]:
    rows = [("", "mean", "", "CV", "least", "most", "runs")]
    for name in ALSO_SHOWN:
        values = [run.values[name] for run in runs if name in run.values]
        if values:
            mean = fmean(values)
            cv = f"{stdev(values) / mean:.1%}" if len(values) > 1 and mean else ""
            unit = METRICS[name].unit
            rows.append((name, number(mean), unit, cv, number(min(values)), number(max(values)), str(len(values))))
    if len(rows) > 1:
        yield from aligned(rows)


def _troubles(review: Review) -> Iterator[str]:
    if review.outcomes.get("ok", 0) < review.requests:
        first = next(iter(review.reasons), "")
        yield f"{_outcomes(review)}{f': {first}' if first else ''}"
    yield from (str(finding) for finding in review.findings if _is_wrong(finding))
    if differing := [difference.name for difference in review.differences]:
        named = ", ".join(differing[:MOST_NAMED])
        yield f"differs from what is stored: {named}{', ...' * (len(differing) > MOST_NAMED)}"
    if review.rereading is not None and review.rereading.differing:
        yield from _reread(review)


def _is_wrong(finding: Finding) -> bool:
    return finding.status is Status.FAIL and finding.policy in {"require", "warn"}


def _count(count: int, thing: str) -> str:
    return f"{count} {thing}{'s' * (count != 1)}"
