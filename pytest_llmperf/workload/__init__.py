"""Pure: workload + load + seed + what was read from files -> plan, the same bytes every time."""

from pytest_llmperf.workload.deal import Deal
from pytest_llmperf.workload.material import Arrival, Entry, Material, Tokenizer, Vocabulary
from pytest_llmperf.workload.planner import plan

__all__ = ["Arrival", "Deal", "Entry", "Material", "Tokenizer", "Vocabulary", "plan"]
