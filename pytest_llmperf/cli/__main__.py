"""``python -m pytest_llmperf.cli``: the same command where the script is not on the path."""

from pytest_llmperf.cli import main

raise SystemExit(main())
