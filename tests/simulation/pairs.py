"""Two engines by turns, A B B A A B B A, on a machine that drifts; and what pooled requests make of healthy runs."""

from __future__ import annotations

import math

import numpy as np

from pytest_llmperf.judge import SINGLE, judge
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement, Observation
from pytest_llmperf.model.verdict import Verdict, Word
from tests.simulation.pooled import false_alarms
from tests.simulation.rates import SEED, error

ORDER = "ABBAABBA"
RUN_SD, DRIFT = 0.014, 0.03
GATE = Gate(metric=METRICS["mean_tpot_ms"], margin=0.05, reference="A")


def pair(loss: float, rng: np.random.Generator) -> Verdict:
    """One comparison of B, which is slower by ``loss``, with A; the machine slows down by ``DRIFT`` meanwhile."""
    sides: dict[str, list[Observation]] = {"A": [], "B": []}
    for place, side in enumerate(ORDER):
        effect = RUN_SD * rng.normal() + math.log1p(DRIFT) * place / (len(ORDER) - 1)
        value = 15 * math.exp(effect) * (1 + loss * (side == "B"))
        sides[side].append(Observation(value, side, place))
    reference, candidate = (Measurement({GATE.metric.name: tuple(sides[side])}) for side in "AB")
    (verdict,) = judge(reference, candidate, [GATE])
    return verdict


def rates(loss: float, draws: int) -> tuple[float, float, float]:
    """Shares of comparisons that are REGRESSED, whose test says so whatever the floor, and that are PASSED."""
    rng = np.random.default_rng([SEED, round(1000 * loss)])
    verdicts = [pair(loss, rng) for _ in range(draws)]
    red = sum(verdict.word is Word.REGRESSED for verdict in verdicts)
    shown = sum(verdict.p_fail is not None and verdict.p_fail <= SINGLE.alpha for verdict in verdicts)
    passed = sum(verdict.word in {Word.PASSED, Word.IMPROVED} for verdict in verdicts)
    return red / draws, shown / draws, passed / draws


def table(draws: int) -> str:
    """Markdown, of so many comparisons a row."""
    lines = ["| 4 + 4 runs, run sd 1.4 %, drift 3 %, margin 5 % | REGRESSED | p <= .05 | PASSED |", "|---|---|---|---|"]
    for loss in (0.0, 0.03, 0.05):
        shares = " | ".join(f"{100 * share:.1f} ± {100 * error(share, draws):.1f} %" for share in rates(loss, draws))
        lines.append(f"| loss {100 * loss:g} % | {shares} |")
    lines += ["", "| healthy runs, 5 against 3, nominal 5 % | false alarms |", "|---|---|"]
    for unit, name in (("request", "requests pooled (Welch)"), ("run", "one value a run (t test)")):
        share = false_alarms(unit, draws)  # type: ignore[arg-type]
        lines.append(f"| {name} | {100 * share:.1f} ± {100 * error(share, draws):.1f} % |")
    return "\n".join(lines) + "\n"
