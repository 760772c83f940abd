"""Custom: the prompts of a file, in its order."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_llmperf.errors import DataError
from pytest_llmperf.model.suite import Workload
from pytest_llmperf.workload.ask import Ask
from pytest_llmperf.workload.deal import Deal, deal, one_by_one
from pytest_llmperf.workload.material import Entry


def prompts_of_file(workload: Workload, entries: Sequence[Entry], place: Deal) -> list[Ask]:
    """The requests of one run: what a line asks for holds, ``output_tokens`` of the workload for the other lines.

    Raises:
        DataError: too few lines, a line that says no length where the workload says none either, or a chat where the
            workload's ``api`` is completions.
    """
    fallback = workload.output_tokens if isinstance(workload.output_tokens, int) else None

    def use(entry: Entry) -> Ask:
        asked = entry.output_tokens or fallback
        if asked is None:
            raise DataError(f"{entry.where}: no output_tokens; write it there, or in the workload for all such lines")
        if entry.messages and workload.api != "chat":
            raise DataError(f"{entry.where}: messages need api: chat in the workload")
        return Ask(prompt=entry.prompt, messages=entry.messages, output_tokens=asked)

    return deal(entries, use, workload.requests, place, one_by_one if workload.oversample else None)
