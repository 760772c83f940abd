"""Exit statuses of the command."""

from __future__ import annotations

FINE = 0
REGRESSION = 1
USAGE = 2
UNFIT = 10
"""Invalid or unfit: what was asked could be done, and what came out must not be relied on."""
INTERRUPTED = 130
"""As shells have it for Ctrl-C; what was started has been ended."""
