"""A case result as lines for a terminal: facts, size against margin, evidence, next step."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.metric import GROUPS
from pytest_llmperf.model.published import Beside
from pytest_llmperf.model.result import CaseResult
from pytest_llmperf.model.verdict import BASELINE, RECENT, Verdict, Word, worst
from pytest_llmperf.reports.layout import aligned, change, number, p_value, share

ALSO_SHOWN = (
    "output_throughput", "request_throughput", "mean_ttft_ms", "p99_ttft_ms", "mean_tpot_ms", "mean_itl_ms",
    "mean_e2el_ms", "acceptance_length", "acceptance_rate",
)  # fmt: skip
"""Measured but not gated: shown on one line, where they could be computed; the JSON report has all of them."""
_REVISION = "--llmperf-baselines=git:"


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
    if result.failures is not None and result.failures.word is not Word.PASSED:
        words.append(f"failed requests {result.failures.word}")
    if result.failure:
        words = [str(Word.FAILED)]
    elif result.skipped:
        words = ["skipped"]
    named = [result.nodeid, *([result.subject] if result.subject else []), result.hardware, ", ".join(words)]
    return "   ".join(named).rstrip()


def _body(result: CaseResult) -> Iterator[str]:
    if result.quarantine:
        yield result.quarantine
    if result.failure:
        yield from result.failure.splitlines()
        return
    if result.skipped:
        yield result.skipped
        return
    yield from _verdicts(result.verdicts)
    yield from _requests(result.failures)
    if result.account:
        yield result.account
    yield from _also(result)
    yield from _published(result.beside)
    # Without verdicts the checks are the result; with them, only what is wrong belongs here.
    yield from (_finding(finding) for finding in result.findings if not result.verdicts or _worth_showing(finding))
    yield from _unverified(result)
    yield from _next_steps(result)


def _verdicts(verdicts: Sequence[Verdict]) -> Iterator[str]:
    yield from aligned([row for verdict in verdicts for row in _rows(verdict)])
    yield from (_note(verdict) for verdict in verdicts if _note(verdict))


def _rows(verdict: Verdict) -> Iterator[tuple[str, ...]]:
    metric = METRICS[verdict.metric]
    runs = f"{verdict.runs} run{'s' * (verdict.runs != 1)}"
    if verdict.reference is None or verdict.measured is None or verdict.change is None:
        value = "" if verdict.measured is None else f"{number(verdict.measured)} {metric.unit}"
        against = "" if verdict.against in {BASELINE, RECENT} else f" against {_reference(verdict)}"
        yield (
            verdict.metric, value, "", f"margin {share(verdict.margin, metric)}", "", f"{runs}{against}",
            str(verdict.word),
        )  # fmt: skip
        return
    moved = change(verdict.change, metric)
    if verdict.interval is not None and not _exact(verdict):
        low, high = verdict.interval
        moved += f" [{change(low, metric, unit=False)}, {change(high, metric, unit=False)}]"
    yield (
        verdict.metric,
        f"{number(verdict.reference)} -> {number(verdict.measured)} {metric.unit}".rstrip(),
        moved,
        f"margin {share(verdict.margin, metric)}{_sees(verdict)}",
        _p_value(verdict),
        f"{runs} against {_reference(verdict)}",
        str(verdict.word),
    )


def _sees(verdict: Verdict) -> str:
    """The smallest change that would have been seen in four of five cases; exact counts see their floor."""
    if verdict.smallest_visible is None:
        return ""
    return f" (sees {share(verdict.smallest_visible, METRICS[verdict.metric])})"


def _reference(verdict: Verdict) -> str:
    sessions = f"{verdict.reference_sessions} session{'s' * (verdict.reference_sessions != 1)}"
    if verdict.against == RECENT:
        return f"{verdict.reference_sessions} recent session{'s' * (verdict.reference_sessions != 1)}"
    if verdict.against == BASELINE:
        return f"baseline of {sessions}{', uncalibrated' if verdict.calibrated is False else ''}"
    promise = "" if verdict.at_least is None else f", at least {verdict.at_least:g} x"
    return f"{verdict.reference_runs} of {verdict.against}{promise}"


def _p_value(verdict: Verdict) -> str:
    p = verdict.p_fail if verdict.word is Word.REGRESSED else verdict.p_pass
    return "exact" if p is None else p_value(p)


def _exact(verdict: Verdict) -> bool:
    """True for counts that repeat exactly: there is no noise to state an interval or a p of."""
    return verdict.p_pass is None


def _note(verdict: Verdict) -> str:
    """What a verdict wants to say beside its row: why it is undecided, and what a fresh start showed."""
    from pytest_llmperf import judge  # noqa: PLC0415 (numpy, scipy: not to collect)

    metric = METRICS[verdict.metric]
    notes = []
    if verdict.cause:
        notes.append(verdict.cause)
    if verdict.confirmation is not None and verdict.word is Word.REGRESSED:
        notes.append(f"confirmed by a fresh start ({change(verdict.confirmation, metric)})")
    if verdict.word is Word.IMPROVED and verdict.against == BASELINE:
        notes.append("clearly better than the baseline: accept it, or the next loss of that size passes unseen")
    if verdict.word is not Word.INCONCLUSIVE:  # whose cause says it
        notes += filter(None, [judge.provisional(verdict, Gate(metric=metric, margin=verdict.margin))])
    if verdict.quarantine:
        notes.append(verdict.quarantine)
    return f"{verdict.metric}: {'; '.join(notes)}" if notes else ""


def _requests(failures: Verdict | None) -> Iterator[str]:
    """How many requests failed, where some may."""
    if failures is None or failures.measured is None or failures.reference is None:
        return
    text = f"failed requests: {100 * failures.measured:.3g} % ({100 * failures.reference:g} % may), {failures.word}"
    yield f"{text}: {failures.cause}" if failures.cause else text


def _published(beside: Sequence[Beside]) -> Iterator[str]:
    """A table of its own: what stands here is no verdict."""
    if not beside:
        return
    yield "beside published figures (of other machines and days; never judged):"
    yield from (f"  {line}" for line in aligned([_beside(each) for each in beside]))


def _beside(each: Beside) -> tuple[str, ...]:
    published, metric = each.published, METRICS[each.published.metric]
    low, high = each.interval
    return (
        published.metric,
        f"{number(published.value)} -> {number(each.measured)} {metric.unit}".rstrip(),
        f"{change(each.change, metric)} [{change(low, metric, unit=False)}, {change(high, metric, unit=False)}]",
        f"definition {published.definition}",
        f"{published.source} ({published.conditions})",
        f"EXPIRED {published.expires}" if each.expired else "",
    )


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


def _unverified(result: CaseResult) -> Iterator[str]:
    """What a suite requires of machine and engine and nobody could read: beside verdicts, never as a pass."""
    names = [finding.check for finding in result.findings if finding.unverified]
    if names and result.verdicts:
        yield f"unverified (required, and could not be read): {', '.join(names)}"


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
    stored = [verdict for verdict in result.verdicts if verdict.against in {BASELINE, RECENT}]
    if any(verdict.word in {Word.REGRESSED, Word.IMPROVED} for verdict in stored):
        yield f"accept{_recording(result, 'all')}"
    unmatched = [verdict for verdict in stored if verdict.word is Word.NO_BASELINE]
    if unmatched:
        # A file that is there and does not fit is replaced only on purpose.
        mode = "missing" if all(verdict.cause.startswith("there is no file ") for verdict in unmatched) else "all"
        yield f"record one{_recording(result, mode)}"


def _recording(result: CaseResult, mode: str) -> str:
    """The command that records, and when what it records counts: a revision's baselines are only read."""
    given = shlex.split(result.arguments)
    options = [option for option in given if not option.startswith(_REVISION)]
    revisions = [option.removeprefix(_REVISION) for option in given if option.startswith(_REVISION)]
    counts = "".join(f" (counts once it is in {revision})" for revision in revisions)
    command = f"pytest '{result.nodeid}' {shlex.join(options)}".rstrip()
    return f"{counts}: {command} --llmperf-accept={mode} --llmperf-why='…'"
