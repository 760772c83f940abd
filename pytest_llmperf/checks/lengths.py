"""Lengths: were prompts as long as they were meant to be?"""

from __future__ import annotations

import numpy as np

from pytest_llmperf.model.finding import Finding, Status
from pytest_llmperf.model.records import Records

INPUT_TOLERANCE = 0.01


def input_length(records: Records) -> Finding:
    """Whether the server saw the prompts that it was sent.

    A request of which the server counted fewer, by over 1 % and one token, forbids to judge the run: something cut the
    prompt. More are only shown: a tokenizer that splits words, or a chat template. Both counts are kept.
    """
    told = records.ok & (records.input_tokens >= 0) & (records.planned_input_tokens > 0)
    expected = f"the client's count, within {INPUT_TOLERANCE:.0%} and one token a request"
    if not told.any():
        return Finding(
            check="input_length", status=Status.UNSUPPORTED, policy="warn", expected=expected,
            value="client or server did not count prompt tokens",
        )  # fmt: skip
    planned, counted = records.planned_input_tokens[told], records.input_tokens[told]
    off = np.maximum(np.abs(counted - planned) - 1, 0).sum() / planned.sum()
    cut = counted < planned * (1 - INPUT_TOLERANCE) - 1
    value = f"client {planned.sum()}, server {counted.sum()} prompt tokens"
    if cut.any():
        first = int(np.argmax(cut))
        value += f"; {np.count_nonzero(cut)} of {len(cut)} were cut, the first to {counted[first]} of {planned[first]}"
    return Finding(
        check="input_length",
        status=Status.FAIL if cut.any() or off > INPUT_TOLERANCE else Status.PASS,
        policy="require" if cut.any() else "warn",
        value=value,
        expected=expected,
        evidence=f"usage.prompt_tokens of {np.count_nonzero(told)} requests",
        remedy="look for a context limit that truncates"
        if cut.any()
        else "compare only with results of the same model and API",
    )
