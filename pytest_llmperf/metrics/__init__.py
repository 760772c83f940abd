"""Pure: a run's records in, one number per metric out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pytest_llmperf.metrics.formulas import compute

__all__ = ["compute"]


def __getattr__(name: str) -> Any:
    """``compute`` on first use: it needs numpy, and collecting a suite needs only ``definitions``."""
    if name == "compute":
        from pytest_llmperf.metrics.formulas import compute  # noqa: PLC0415

        return compute
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
