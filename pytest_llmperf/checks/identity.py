"""Speculation must not change what is said: the same greedy requests, with and without it."""

from __future__ import annotations

from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.run import Run


def same_output(on: Run, off: Run) -> Finding:
    """Whether answers at temperature 0 are the same with speculation on and off, request by request.

    Verification keeps exactly the tokens that the model itself would have chosen, so a difference is a defect of the
    engine, or arithmetic that differs between a step of one token and one of several. It is recorded as a warning,
    since the latter is common on GPUs.

    Args:
        on: the run with speculation; its requests were sent one at a time.
        off: the same requests without it.

    Raises:
        ValueError: other requests.
    """
    if (on.seed, len(on.records)) != (off.seed, len(off.records)):
        raise ValueError(f"runs {on.id} and {off.id} sent other requests")
    pairs = [(i, *texts) for i, texts in enumerate(zip(on.records.text_sha256, off.records.text_sha256, strict=True))]
    answered = [(i, with_it, without) for i, with_it, without in pairs if with_it and without]
    different = [i for i, with_it, without in answered if with_it != without]
    if not answered:
        status, value = Status.UNSUPPORTED, "no request has an answer on both sides"
    elif different:
        status, value = (
            Status.FAIL,
            f"{len(different)} of {len(answered)} answers differ, first that of request {different[0]}",
        )
    else:
        status, value = Status.PASS, f"{len(answered)} answers are the same"
    return Finding(
        check="same_output",
        status=status,
        policy="warn",
        value=value,
        expected="the same text with and without speculation at temperature 0",
        evidence=f"digests of the answers of runs {on.id} and {off.id}; their raw responses are kept",
        remedy="compare the two texts: a difference in meaning is a defect of the engine's verification",
    )
