"""Saved runs without their columns: found by the names of their folders, read from ``run.json`` alone.

A night looks at hundreds of earlier runs, and their raw stamps are a thousand times as large as what is asked of them.
``pipeline.saved`` reads those, too.
"""

from pytest_llmperf.history.folder import RECORDS, RUN, candidates, new_folder
from pytest_llmperf.history.recent import Recent, recent
from pytest_llmperf.history.run_file import FORMAT, read_facts

__all__ = ["FORMAT", "RECORDS", "RUN", "Recent", "candidates", "new_folder", "read_facts", "recent"]
