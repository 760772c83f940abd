"""``--llmperf-set KEY=VALUE``: one value of a suite, changed for one session."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_llmperf.suitefile.document import parse_value
from pytest_llmperf.suitefile.draft import Draft
from pytest_llmperf.suitefile.vocabulary import locate


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
