"""Nights with the noise that was recorded on an H200, every gate at ``margin: auto``.

The CVs are those of tests/data/calibration/vllm-0.26.0_h200.jsonl (11 warm runs, three starts of one build). Each night
calibrates on its own baseline and takes margin and cv from there, as a suite would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from pytest_llmperf.judge import LOOKS, calibrate, calibrated
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.verdict import Word
from tests.simulation.campaign import MOST_RUNS, Judged, judge_case, losses, references
from tests.simulation.rates import SEED, Tally, error
from tests.simulation.world import Noise, World, draw

CVS = {
    "output_throughput": 0.0027,
    "mean_e2el_ms": 0.0033,
    "p99_ttft_ms": 0.016,
    "mean_tpot_ms": 0.046,
    "mean_ttft_ms": 0.10,
}
H200 = World(gates=[Gate(metric=METRICS[name], margin=METRICS[name].margin, cv=cv) for name, cv in CVS.items()])
LOSSES = (0.005, 0.0075, 0.01, 0.0125, 0.015, 0.0175, 0.02, 0.025, 0.03)
"""Of throughput; the other metrics stay as they are, which is harder to see than a real loss."""
HEAD = (
    "| loss of throughput | red after 1 run | by 3 runs | by 5 runs | and confirmed | called PASSED |\n"
    "|---|---|---|---|---|---|\n"
)


def tally(world: World, nights: Iterable[int]) -> Tally:
    """Count what comes of the nights with these numbers: all cases without a loss, case 0 with each of ``LOSSES``."""
    seen: Tally = Counter()
    for number in nights:
        noise = draw(world, np.random.default_rng([SEED, number]), MOST_RUNS)
        cases = [_gated(world, noise, case) for case in range(world.cases)]
        healthy = [judge_case(*each, losses(each[0], 0, ())) for each in cases]
        seen["nights"] += 1
        seen["healthy: red"] += any(judged.red for judged in healthy)
        seen["cases"] += len(cases)
        seen["runs"] += sum(judged.runs for judged in healthy)
        for gated, *_ in cases:
            seen.update(f"{gate.metric.name}: margin {gate.margin:g}" for gate in gated.gates)
        for loss in LOSSES:
            worse = losses(cases[0][0], 0, ())
            worse[0] = -np.log1p(-loss)
            _count(seen, loss, judge_case(*cases[0], worse))
    return seen


def _gated(world: World, noise: Noise, case: int) -> tuple[World, Noise, int, list[Measurement]]:
    """One case with the gates that its own baseline calibrates; what cannot be seen is not gated."""
    (stored,) = references(world, noise, case)
    calibration = calibrate(stored, [gate.metric for gate in world.gates])
    asked = [calibrated(replace(gate, cv=None, auto=True), calibration) for gate in world.gates]
    kept = [place for place, gate in enumerate(asked) if gate is not None]
    part = Noise(*(side[..., kept] for side in (noise.anchor, noise.recent, noise.candidate, noise.fresh)))
    return replace(world, gates=[gate for gate in asked if gate is not None]), part, case, [stored]


def _count(seen: Tally, loss: float, judged: Judged) -> None:
    first, last = judged.before[0], judged.after[0]
    for look in LOOKS:
        seen[f"{loss}: by {look.runs}"] += first.word is Word.REGRESSED and first.runs <= look.runs
    seen[f"{loss}: red"] += last.word is Word.REGRESSED
    seen[f"{loss}: passed"] += last.word in {Word.PASSED, Word.IMPROVED}


def table(seen: Tally) -> str:
    """Markdown: losses, then healthy nights and the margins that were chosen."""
    nights = seen["nights"]

    def share(name: str) -> str:
        found = seen[name] / nights
        return f"{100 * found:.1f} ± {100 * error(found, nights):.1f} %"

    rows = [
        f"| {100 * loss:g} % | "
        + " | ".join(share(f"{loss}: {what}") for what in (*(f"by {look.runs}" for look in LOOKS), "red", "passed"))
        + " |\n"
        for loss in LOSSES
    ]
    margins = ", ".join(
        f"{name} {100 * count / seen['cases']:.0f} %"
        for name, count in sorted(seen.items(), key=lambda item: -item[1])
        if ": margin " in name and count >= seen["cases"] / 100
    )
    healthy = (
        f"{nights} nights; healthy night red {share('healthy: red')}; {seen['runs'] / seen['cases']:.2f} runs a case"
    )
    return f"{HEAD}{''.join(rows)}\n{healthy}\nMargins chosen (share of cases): {margins}\n"
