"""One verdict per gate, by the procedure that fits its reference."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_llmperf.judge import exact, interleaved, stored, words
from pytest_llmperf.judge.evidence import Evidence
from pytest_llmperf.judge.looks import LOOKS, SINGLE, TURNS, Look, halved
from pytest_llmperf.judge.references import of_two
from pytest_llmperf.judge.samples import Sample, first_runs, read, runs_of, verdict
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.verdict import BASELINE, RECENT, Verdict, Word
from pytest_llmperf.stats.multiplicity import benjamini_hochberg
from pytest_llmperf.stats.variance import mean


@dataclass(frozen=True, slots=True)
class _Compared:
    """A gate between evidence and word, which has to wait for the p-values of its family."""

    evidence: Evidence
    reference: Sample
    candidate: Sample


def judge(
    reference: Measurement,
    candidate: Measurement,
    gates: Sequence[Gate],
    *,
    look: Look = SINGLE,
    family: int = 1,
) -> list[Verdict]:
    """One verdict per gate, in the order of ``gates``; same input, same output, bit for bit.

    A gate without a reference arm is tested against the stored baseline: p-values adjusted by Benjamini-Hochberg over
    the case's gates, times ``family``. A gate with one is tested on its own, by least squares with a time trend.
    A gate with ``cv`` 0 is compared exactly.

    Args:
        reference: of the baseline, or of the arm that the gates name.
        candidate: all runs so far.
        gates: of one case.
        look: how much error this try may spend.
        family: C, the number of gated cases that are judged together.

    Raises:
        ValueError: ``family`` below 1, or runs of a candidate and its reference arm without one order in time.
    """
    return _judge(_read(reference, gates), candidate, gates, look, family)


def _judge(
    references: Sequence[Sample],
    candidate: Measurement,
    gates: Sequence[Gate],
    look: Look,
    family: int,
    earlier: Sequence[Verdict] = (),
) -> list[Verdict]:
    """``judge`` on references that are read already; what ``earlier`` verdicts decided stays as it is."""
    if family < 1:
        raise ValueError(f"family = {family}: the case that is judged is one of them")
    runs = len(runs_of(candidate))
    opened = [
        _open(gate, there, here, runs)
        for gate, there, here in zip(gates, references, _read(candidate, gates), strict=True)
    ]
    # Gates of the family without a value keep their place as p = 1: one that is missing makes no other one redder.
    members = [index for index, gate in enumerate(gates) if _has_looks(gate)]
    worse = _adjusted([_p(opened[index], "worse") for index in members], family)
    better = _adjusted([_p(opened[index], "better") for index in members], family)
    adjusted = dict(zip(members, zip(worse, better, strict=True), strict=True))
    verdicts = []
    for index, (gate, state) in enumerate(zip(gates, opened, strict=True)):
        if earlier and not undecided([earlier[index]]):
            verdicts.append(earlier[index])
        elif isinstance(state, Verdict):
            verdicts.append(state)
        elif index in adjusted:
            verdicts.append(_close(gate, state, look, *adjusted[index]))
        else:
            verdicts.append(_close(gate, state, look, state.evidence.p_worse, state.evidence.p_better))
    return verdicts


def sequential(
    reference: Measurement,
    candidate: Measurement,
    gates: Sequence[Gate],
    *,
    recent: Measurement | None = None,
    looks: Sequence[Look] = LOOKS,
    family: int = 1,
) -> list[Verdict]:
    """The verdicts after the runs so far, each gate with the word of the first look that decided it.

    Each look sees the first ``look.runs`` runs; runs beyond the last complete look wait for the next one. So a saved
    measurement gives the verdict again that it had. Gates without looks (against an arm, or exact) are judged on all.

    Args:
        reference: of the baseline, or of the arm that the gates name.
        candidate: all runs so far.
        gates: of one case.
        recent: a second stored reference. A gate is then red if it is against either, at half of each alpha, and
            PASSED only if it is against both; gates without looks are compared with ``reference`` alone.
        looks: when a verdict is tried, and what error each try may spend.
        family: C, the number of gated cases that are judged together.
    """
    if recent is not None:
        looks = halved(looks)
    verdicts = _sequence(reference, candidate, gates, looks, family)
    if recent is not None:
        others = _sequence(recent, candidate, gates, looks, family)
        verdicts = [
            of_two(first, replace(other, against=RECENT)) if _has_looks(gate) else first
            for gate, first, other in zip(gates, verdicts, others, strict=True)
        ]
    without = [gate for gate in gates if not _has_looks(gate)]
    on_all_runs = iter(judge(reference, candidate, without) if without else ())
    return [old if _has_looks(gate) else next(on_all_runs) for gate, old in zip(gates, verdicts, strict=True)]


def _sequence(
    reference: Measurement, candidate: Measurement, gates: Sequence[Gate], looks: Sequence[Look], family: int
) -> list[Verdict]:
    """``sequential`` against one reference, for the gates that have looks."""
    runs, there = len(runs_of(candidate)), _read(reference, gates)
    verdicts = _judge(there, first_runs(candidate, looks[0].runs), gates, looks[0], family)
    for look in looks[1:]:
        if look.runs > runs or not undecided(verdicts):
            break
        verdicts = _judge(there, first_runs(candidate, look.runs), gates, look, family, verdicts)
    return verdicts


def alternating(
    reference: Measurement, candidate: Measurement, gates: Sequence[Gate], *, looks: Sequence[Look] = TURNS
) -> list[Verdict]:
    """The verdicts of an A/B after the turns so far, each gate with the word of the first look that decided it.

    Each look sees the first ``look.runs`` runs of both sides; all gates compare with the arm of ``reference``.
    """
    verdicts: list[Verdict] = []
    for look in looks:
        if verdicts and (look.runs > len(runs_of(candidate)) or not open_turns(verdicts)):
            break
        now = judge(first_runs(reference, look.runs), first_runs(candidate, look.runs), gates, look=look)
        verdicts = [later if open_turns([first]) else first for first, later in zip(verdicts or now, now, strict=True)]
    return verdicts


def open_turns(verdicts: Sequence[Verdict]) -> bool:
    """True when more turns of an A/B could decide a gate."""
    return any(each.word is Word.INCONCLUSIVE and each.p_pass is not None for each in verdicts)


def undecided(verdicts: Sequence[Verdict]) -> bool:
    """True when the next look could decide a gate: one tested against a baseline is INCONCLUSIVE.

    Gates against an arm have a fixed number of runs, since going on while undecided costs error; exact counts have no
    noise that more runs would lessen; a verdict that a fresh start did not confirm is final.
    """
    return any(
        each.word is Word.INCONCLUSIVE
        and each.against in {BASELINE, RECENT}
        and each.p_pass is not None
        and each.confirmation is None
        for each in verdicts
    )


def refuse(gates: Sequence[Gate], why: str) -> list[Verdict]:
    """NO BASELINE for every gate, with the reason: there is none, or it is not comparable."""
    return [verdict(gate, read((), gate), read((), gate), Word.NO_BASELINE, why) for gate in gates]


def void(gates: Sequence[Gate], why: str) -> list[Verdict]:
    """INVALID for every gate, with the reason: machine, client or session were not fit to measure."""
    return [verdict(gate, read((), gate), read((), gate), Word.INVALID, why) for gate in gates]


def _has_looks(gate: Gate) -> bool:
    """True for a gate that is tested against a baseline: one of the family, and more runs can help it."""
    return gate.reference is None and gate.cv != 0


def _read(side: Measurement, gates: Sequence[Gate]) -> list[Sample]:
    """What one side has for each gate."""
    return [read(side.of(gate.metric.name), gate, side.invalid.get(gate.metric.name, "")) for gate in gates]


def _open(gate: Gate, there: Sample, here: Sample, runs: int) -> Verdict | _Compared:
    """The verdict where no p-value is needed for it, else the evidence. ``runs`` is how many the candidate had."""
    unusable = _unusable(gate, there, here, runs)
    if unusable is not None:
        return unusable
    if gate.cv == 0:
        return _exact(gate, there, here)
    if gate.reference is None:
        return _Compared(stored.compare(gate, there.layout, here.layout), there, here)
    both = len(there.runs) + len(here.runs)
    if both < interleaved.FEWEST_RUNS:
        few = f"too few runs: {both} of at least {interleaved.FEWEST_RUNS}"
        return verdict(gate, there, here, Word.INCONCLUSIVE, few)
    return _Compared(interleaved.compare(gate, there.runs, here.runs), there, here)


def _unusable(gate: Gate, there: Sample, here: Sample, runs: int) -> Verdict | None:
    """INVALID or NO BASELINE where the values of a side cannot be judged."""
    name = gate.metric.name
    if here.fault:
        return verdict(gate, there, here, Word.INVALID, here.fault)
    if len(here.runs) < runs:  # judging the rest would select runs
        return verdict(gate, there, here, Word.INVALID, f"no value in {runs - len(here.runs)} of {runs} runs")
    if not there.runs and gate.reference is None:
        return verdict(gate, there, here, Word.NO_BASELINE, f"the baseline has no {name}")
    if there.fault:
        side = f"reference {gate.reference!r}" if gate.reference else "baseline"
        return verdict(gate, there, here, Word.INVALID, f"{side}: {there.fault}")
    return None


def _exact(gate: Gate, there: Sample, here: Sample) -> Verdict:
    word, cause = exact.decide(gate, there.values, here.values)
    change = gate.change(mean(here.values) - mean(there.values))
    smallest = words.visible_loss(gate, gate.floor)
    return verdict(gate, there, here, word, cause, change=change, interval=(change, change), smallest_visible=smallest)


def _close(gate: Gate, compared: _Compared, look: Look, p_worse: float, p_better: float) -> Verdict:
    """The verdict from evidence and adjusted p-values."""
    evidence = compared.evidence
    word = words.decide(gate, evidence, look, p_worse, p_better)
    return verdict(
        gate,
        compared.reference,
        compared.candidate,
        word,
        _cause(gate, compared) if word is Word.INCONCLUSIVE else "",
        change=gate.change(evidence.difference),
        interval=evidence.interval(gate),
        p_fail=p_worse,
        p_pass=evidence.p_loss(gate.delta),
        smallest_visible=words.visible_loss(gate, evidence.visible),
    )


def _cause(gate: Gate, compared: _Compared) -> str:
    sessions = len(compared.reference.groups)
    if gate.reference is not None or sessions >= stored.ENOUGH_SESSIONS:
        return words.cause(gate, compared.evidence)
    return words.cause(
        gate,
        compared.evidence,
        with_enough_sessions=stored.visible_with_enough_sessions(
            gate, compared.reference.layout, compared.candidate.layout
        ),
        sessions=f"{sessions} of {stored.ENOUGH_SESSIONS} sessions",
    )


def _p(state: Verdict | _Compared, side: str) -> float:
    if isinstance(state, Verdict):
        return 1.0
    return state.evidence.p_worse if side == "worse" else state.evidence.p_better


def _adjusted(p: Sequence[float], family: int) -> list[float]:
    """Benjamini-Hochberg within the case, times the number of cases, at most 1."""
    return [min(1.0, family * q) for q in benjamini_hochberg(p)]
