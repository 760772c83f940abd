"""YAML text -> Suite -> cases; every mistake at once, each with file, line, value and what would be right."""

from pytest_llmperf.suitefile.expansion import expand, expand_known, expand_pair, knows
from pytest_llmperf.suitefile.jsonschema import json_schema
from pytest_llmperf.suitefile.loading import load_suite
from pytest_llmperf.suitefile.override import read_overrides
from pytest_llmperf.suitefile.selection import check_engines, check_names, check_overrides, check_pair

__all__ = [
    "check_engines", "check_names", "check_overrides", "check_pair", "expand", "expand_known", "expand_pair",
    "json_schema", "knows", "load_suite", "read_overrides",
]  # fmt: skip
