"""A case result as lines for a terminal: facts, size against margin, evidence, next step."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.metric import GROUPS
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.verdict import Verdict, Word, worst
from pytest_llmperf.reports.layout import aligned, change, number, p_value, share

ALSO_SHOWN = (
    "output_throughput", "request_throughput", "mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "mean_itl_ms",
    "mean_e2el_ms", "acceptance_length", "acceptance_rate",
)  # fmt: skip
"""Measured but not gated: shown on one line, where they could be computed; the JSON report has all of them."""


def render(result: CaseResult) -> list[str]:
    """The block of one case; the first line names it, the others are indented."""
    return [_heading(result), *(f"  {line}" for line in _body(result))]


def render_item(result: CaseResult) -> list[str]:
    """What one item of the case has to say; the session's summary has the rest of the case."""
    return [_heading(result), *(f"  {line}" for line in _verdicts(result.verdicts))]


def _heading(result: CaseResult) -> str:
    words = [
        f"{group} {worst(verdict.word for verdict in verdicts)}"
        for group in GROUPS
        if (verdicts := [v for v in result.verdicts if METRICS[v.metric].group == group])
    ]
    if result.failure:
        words = [str(Word.FAILED)]
    elif result.skipped:
        words = ["skipped"]
    named = [result.nodeid, *([result.subject] if result.subject else []), result.hardware, ", ".join(words)]
    return "   ".join(named).rstrip()


def _body(result: CaseResult) -> Iterator[str]:
    if result.failure:
        yield from result.failure.splitlines()
        return
    if result.skipped:
        yield result.skipped
        return
    yield from _verdicts(result.verdicts)
    yield from _also(result)
    # Without verdicts the checks are the result; with them, only what is wrong belongs here.
    yield from (_finding(finding) for finding in result.findings if not result.verdicts or _worth_showing(finding))
    yield from _next_steps(result)


def _verdicts(verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield from aligned([row for verdict in verdicts for row in _rows(verdict)])
    yield from (_note(verdict) for verdict in verdicts if _note(verdict))


def _rows(verdict: Verdict) -> Iterator[tuple[str, ...]]:
    metric = METRICS[verdict.metric]
    runs = f"{verdict.runs} run{'s' * (verdict.runs != 1)}"
    if verdict.reference is None or verdict.measured is None or verdict.change is None:
        value = "" if verdict.measured is None else f"{number(verdict.measured)} {metric.unit}"
        yield verdict.metric, value, "", f"margin {share(verdict.margin, metric)}", "", runs, str(verdict.word)
        return
    moved = change(verdict.change, metric)
    if verdict.interval is not None and not _exact(verdict):
        low, high = verdict.interval
        moved += f" [{change(low, metric, unit=False)}, {change(high, metric, unit=False)}]"
    yield (
        verdict.metric,
        f"{number(verdict.reference)} -> {number(verdict.measured)} {metric.unit}".rstrip(),
        moved,
        f"margin {share(verdict.margin, metric)}",
        _p_value(verdict),
        f"{runs} against {_reference(verdict)}",
        str(verdict.word),
    )


def _reference(verdict: Verdict) -> str:
    if verdict.against != "baseline":
        return f"{verdict.reference_runs} of {verdict.against}"
    return f"baseline of {verdict.reference_sessions} session{'s' * (verdict.reference_sessions != 1)}"


def _p_value(verdict: Verdict) -> str:
    p = verdict.p_fail if verdict.word is Word.REGRESSED else verdict.p_pass
    return "exact" if p is None else p_value(p)


def _exact(verdict: Verdict) -> bool:
    """True for counts that repeat exactly: there is no noise to state an interval or a p of."""
    return verdict.p_pass is None


def _note(verdict: Verdict) -> str:
    """What a verdict wants to say beside its row: why it is undecided, and what a fresh start showed."""
    metric = METRICS[verdict.metric]
    notes = []
    if verdict.cause:
        notes.append(verdict.cause)
    if verdict.confirmation is not None and verdict.word is Word.REGRESSED:
        notes.append(f"confirmed by a fresh start ({change(verdict.confirmation, metric)})")
    if verdict.smallest_visible is not None and verdict.word is Word.REGRESSED and not _exact(verdict):
        notes.append(f"smallest change visible here: {share(verdict.smallest_visible, metric)}")
    if verdict.word is Word.IMPROVED and verdict.against == "baseline":
        notes.append("clearly better than the baseline: accept it, or the next loss of that size passes unseen")
    return f"{verdict.metric}: {'; '.join(notes)}" if notes else ""


def _also(result: CaseResult) -> Iterator[str]:
    judged = {verdict.metric for verdict in result.verdicts}
    shown = [
        f"{name} {number(result.metrics[name])} {METRICS[name].unit}".rstrip()
        for name in ALSO_SHOWN
        if name in result.metrics and name not in judged
    ]
    if shown:
        yield "also measured: " + ", ".join(shown)


def _finding(finding: Finding) -> str:
    return str(finding) if finding.status in {Status.FAIL, Status.AT_START} else f"{finding}: {finding.status}"


def _worth_showing(finding: Finding) -> bool:
    return finding.status is Status.FAIL and finding.policy in {"require", "warn"}


def _next_steps(result: CaseResult) -> Iterator[str]:
    words = {verdict.word for verdict in result.verdicts}
    if result.changed and words & {Word.REGRESSED, Word.IMPROVED, Word.INCONCLUSIVE}:
        yield "changed: " + ", ".join(f"{key} {old} -> {new}" for key, (old, new) in result.changed.items())
    command = f"pytest '{result.nodeid}' {result.arguments}".rstrip()
    if words & {Word.REGRESSED} and "::" in result.nodeid:  # what was compared offline is no item
        yield f"again: {command}"
    if result.variant:
        return
    stored = [verdict for verdict in result.verdicts if verdict.against == "baseline"]
    if any(verdict.word in {Word.REGRESSED, Word.IMPROVED} for verdict in stored):
        yield f"accept: {command} --llmperf-accept=all --llmperf-why='…'"
    unmatched = [verdict for verdict in stored if verdict.word is Word.NO_BASELINE]
    if unmatched:
        # A file that is there and does not fit is replaced only on purpose.
        mode = "missing" if all(verdict.cause.startswith("there is no file ") for verdict in unmatched) else "all"
        yield f"record one: {command} --llmperf-accept={mode} --llmperf-why='…'"
