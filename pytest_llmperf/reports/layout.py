"""Layout: numbers and tables as all texts for people have them."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from pytest_llmperf.model.metric import Metric


def aligned(rows: Sequence[Sequence[str]], *, right: Container[int] = ()) -> Iterator[str]:
    """Rows of cells as lines; columns without any text are left out.

    Args:
        rows: all of the same length.
        right: the columns whose cells end, and not begin, below each other.
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        placed = (
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(cells)
            if width
        )
        yield "   ".join(placed).rstrip()


def number(value: float) -> str:
    """Four significant digits, without an exponent."""
    digits = max(0, 3 - _magnitude(value))
    return f"{value:.{digits}f}"


def _magnitude(value: float) -> int:
    return len(str(int(abs(value)))) - 1 if abs(value) >= 1 else 0


def share(value: float, metric: Metric) -> str:
    """A margin or a visible change: in percent, or in the unit of an absolute metric."""
    return f"{value * 100:.3g} %" if metric.scale == "ratio" else f"{value:.3g}"


def change(value: float, metric: Metric, *, unit: bool = True) -> str:
    """A change with its sign: in percent, or in the unit of an absolute metric."""
    if metric.scale == "ratio":
        return f"{value * 100:+.1f}{' %' if unit else ''}"
    return f"{value:+.3f}".replace("-0.000", "+0.000")


def p_value(p: float) -> str:
    """A p-value to three digits, the usual place to stop."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"  # noqa: PLR2004
