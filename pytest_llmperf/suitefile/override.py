"""``--llmperf-set KEY=VALUE``: one value of a suite, changed for one session."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pytest_llmperf.errors import UsageError
from pytest_llmperf.suitefile.document import parse_value
from pytest_llmperf.suitefile.draft import Draft
from pytest_llmperf.suitefile.vocabulary import locate


def read_overrides(values: Iterable[str]) -> dict[str, str]:
    """KEY -> VALUE of what a command line says.

    Raises:
        UsageError: one without a KEY or a VALUE.
    """
    overrides: dict[str, str] = {}
    for value in values:
        key, equals, new = value.partition("=")
        if not equals or not key.strip():
            raise UsageError(f"--llmperf-set={value}: write KEY=VALUE, such as workloads.words.requests=64")
        overrides[key.strip()] = new
    return overrides


def apply_overrides(draft: Draft, overrides: Mapping[str, str]) -> None:
    """Put the values of those overrides into the draft whose KEY makes sense in this suite; others are left alone.

    KEY is a dotted path such as ``workloads.words.requests``. Arms, workloads and loads must exist; any other key may
    be new. VALUE is read as YAML.
    """
    for key, text in overrides.items():
        path = locate(draft.data, key)
        if path is None:
            continue
        try:
            draft.override(path, key, text, parse_value(text))
        except ValueError as error:
            draft.override(path, key, text, text)
            draft.remove(draft.report(path, f"{text!r} is {error}"))
