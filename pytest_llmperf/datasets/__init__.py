"""Files that requests are made from: data sets, traces, a model's vocabulary and tokenizer. Local files only."""

from pytest_llmperf.datasets.supply import supply

__all__ = ["supply"]
