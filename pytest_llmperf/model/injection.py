"""An injection: a loss that is made on purpose, to see whether the gates notice it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, cast, get_args

from pytest_llmperf.errors import UsageError

Slowdown = Literal["ttft", "tpot", "e2el", "throughput"]
Fault = Literal["stall", "drop", "error"]

_CHANGE = re.compile(r"([+-])(\d+(?:\.\d+)?)%")
_FORMS = "ttft=+20%, tpot=+10%, e2el=+10%, throughput=-10%, acceptance=-0.1, stall, drop or error"
MOST = 10.0
"""Ten times as long is more than any gate needs to see."""


@dataclass(frozen=True, slots=True)
class Injection:
    """What is done to the traffic between client and engine, or to the engine.

    Attributes:
        kind: of the loss.
        share: of ``ttft``, ``tpot`` and ``e2el`` how much longer (0.1: 10 % more), of ``throughput`` how much less
            (0.1: 10 % less); of ``acceptance`` the loss in tokens per step; 0 for the faults.
    """

    kind: Slowdown | Fault | Literal["acceptance"]
    share: float = 0.0

    @property
    def slows(self) -> bool:
        """Whether it is measured against a run without it; the faults break the first answer instead."""
        return self.kind in get_args(Slowdown)

    def __str__(self) -> str:
        if self.kind == "acceptance":
            return f"acceptance=-{self.share:g}"
        if not self.slows:
            return self.kind
        return f"{self.kind}={'-' if self.kind == 'throughput' else '+'}{self.share * 100:.4g}%"


def parse(text: str) -> Injection:
    """The injection that a command line asks for.

    Raises:
        UsageError: it asks for none that there is.
    """
    kind, equals, value = text.strip().partition("=")
    if not equals and kind in get_args(Fault):
        return Injection(cast("Fault", kind))
    if kind == "acceptance":
        return Injection("acceptance", _loss(text, value))
    change = _CHANGE.fullmatch(value)
    if kind not in get_args(Slowdown) or change is None:
        raise UsageError(f"--llmperf-inject={text}: write {_FORMS}")
    sign, share = change[1], float(change[2]) / 100
    if (sign == "-") != (kind == "throughput"):
        raise UsageError(f"--llmperf-inject={text}: only losses are injected: {_FORMS}")
    if not 0 < share <= MOST or (kind == "throughput" and share >= 1):
        most = "less than 100%" if kind == "throughput" else f"at most {MOST:.0%}"
        raise UsageError(f"--llmperf-inject={text}: the change must be more than 0 and {most}")
    return Injection(cast("Slowdown", kind), share)


def _loss(text: str, value: str) -> float:
    try:
        loss = -float(value)
    except ValueError:
        loss = 0.0
    if not 0 < loss <= MOST:
        raise UsageError(f"--llmperf-inject={text}: write the tokens per step to lose, such as acceptance=-0.1")
    return loss
