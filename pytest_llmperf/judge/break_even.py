"""Does speculative decoding pay? What a step costs with it, and how many tokens a step must therefore give."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_llmperf.judge.verdicts import judge
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.verdict import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakEven:
    """The account of speculation on against off, at one load.

    Attributes:
        length: acceptance length, tokens a verify step.
        needed: the length at which both are as fast: what a step with speculation costs in steps without.
        verdict: of the metric that decides (throughput, or TPOT), speculation on against off, at least as good.
    """

    length: float
    needed: float
    verdict: Verdict

    def __str__(self) -> str:
        pays = "pays" if self.length >= self.needed else "does not pay"
        return f"speculation {pays}: acceptance length {self.length:.3g}, and it breaks even at {self.needed:.3g}"


def break_even(on: Measurement, off: Measurement, gate: Gate) -> BreakEven:
    """Speculation on against off, both measured in one session, runs by turns.

    A step with speculation takes ``TPOT_on * L`` and yields L tokens, one without takes ``TPOT_off`` and yields one;
    so both are as fast at ``L* = L TPOT_on / TPOT_off``. For a throughput the ratio is turned round.

    Args:
        on: with speculation; needs ``acceptance_length`` beside the gate's metric.
        off: without.
        gate: a ratio metric with a reference arm. Without ``at_least`` it must be no worse; ``at_least=1.2`` asks that
            speculation be worth 20 %.

    Raises:
        ValueError: a gate on an absolute metric or without a reference arm, or a side without a value.
    """
    name = gate.metric.name
    if gate.reference is None or gate.metric.scale != "ratio":
        raise ValueError(f"{name}: speculation pays in a ratio metric against an arm without it")
    if not (on.of(name) and off.of(name) and on.of("acceptance_length")):
        raise ValueError(f"{name}: needs values with and without speculation, and an acceptance length")
    length = on.mean("acceptance_length")
    cost = on.mean(name) / off.mean(name)
    needed = length * (cost if gate.metric.better == "lower" else 1 / cost)
    (verdict,) = judge(off, on, [gate])
    return BreakEven(length=length, needed=needed, verdict=verdict)
