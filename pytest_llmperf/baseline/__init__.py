"""Stored baselines: canonical text that diffs well, read strictly, written atomically, moved only with a reason."""

from pytest_llmperf.baseline.acceptance import Mode, accept, may_write
from pytest_llmperf.baseline.baseline import Accepted, Baseline
from pytest_llmperf.baseline.description import describe
from pytest_llmperf.baseline.reader import parse
from pytest_llmperf.baseline.reference import Reference, reference, slug_of, split
from pytest_llmperf.baseline.store import Entry, Store
from pytest_llmperf.baseline.writer import render

__all__ = [
    "Accepted",
    "Baseline",
    "Entry",
    "Mode",
    "Reference",
    "Store",
    "accept",
    "describe",
    "may_write",
    "parse",
    "reference",
    "render",
    "slug_of",
    "split",
]
