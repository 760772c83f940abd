"""Published numbers as lines for a terminal: a table of their own, since they are no baseline."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date

from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.published import Published
from pytest_llmperf.reports.layout import aligned


def render(file: str, case: str, numbers: Sequence[Published], on: date) -> Iterator[str]:
    """The numbers of one file, those that have expired marked; sources and conditions below, each once."""
    yield f"{file}   {case}   published, never judged"
    rows = [("metric", "value", "definition", "expires")]
    for each in numbers:
        expired = "   EXPIRED" if on >= each.expires else ""
        value = f"{each.value:.12g} {METRICS[each.metric].unit}".rstrip()
        rows.append((each.metric, value, each.definition, f"{each.expires}{expired}"))
    yield from (f"  {line}" for line in aligned(rows))
    for source, conditions in dict.fromkeys((each.source, each.conditions) for each in numbers):
        named = [each.metric for each in numbers if (each.source, each.conditions) == (source, conditions)]
        whose = "" if len(named) == len(numbers) else f"{', '.join(dict.fromkeys(named))}: "
        yield f"  {whose}{source} ({conditions})"
