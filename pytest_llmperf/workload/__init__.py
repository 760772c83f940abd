"""Pure: workload + load + seed -> plan, the same bytes every time."""

from pytest_llmperf.workload.planner import plan

__all__ = ["plan"]
