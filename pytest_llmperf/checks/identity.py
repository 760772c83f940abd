"""Speculation must not change what is said: the same greedy requests, with and without it."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_llmperf.model.finding import Finding, Status

SHOWN = 40
"""Characters of each text around the first difference."""


def same_output(on: Sequence[str | None], off: Sequence[str | None]) -> Finding:
    """Whether answers at temperature 0 are the same with speculation on and off, request by request.

    Verification keeps exactly the tokens that the model itself would have chosen, so a difference is a defect of the
    engine, or arithmetic that depends on the batch. It is recorded as a warning, since the latter is common on GPUs.

    Args:
        on: answers with speculation, None for a request without one.
        off: answers to the same requests without it.

    Raises:
        ValueError: another number of requests.
    """
    if len(on) != len(off):
        raise ValueError(f"{len(on)} answers with speculation and {len(off)} without: these are other requests")
    pairs = [(i, a, b) for i, (a, b) in enumerate(zip(on, off, strict=True)) if a is not None and b is not None]
    different = [(i, a, b) for i, a, b in pairs if a != b]
    if not pairs:
        status, value = Status.UNSUPPORTED, "no request has an answer on both sides"
    elif different:
        status, value = Status.FAIL, f"{len(different)} of {len(pairs)} answers differ; {_first(*different[0])}"
    else:
        status, value = Status.PASS, f"{len(pairs)} answers are the same"
    return Finding(
        check="same_output",
        status=status,
        policy="warn",
        value=value,
        expected="the same text with and without speculation at temperature 0",
        evidence="the texts of both arms' answers to the same requests",
        remedy="compare at concurrency 1; a difference there is a defect of the engine's verification",
    )


def _first(request: int, on: str, off: str) -> str:
    at = next((i for i, (a, b) in enumerate(zip(on, off, strict=False)) if a != b), min(len(on), len(off)))
    here, there = (text[at : at + SHOWN] for text in (on, off))
    return f"request {request} from character {at} on: {here!r} with, {there!r} without"
