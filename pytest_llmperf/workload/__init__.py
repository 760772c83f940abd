"""Pure: workload + load + seed -> plan, the same bytes every time."""
