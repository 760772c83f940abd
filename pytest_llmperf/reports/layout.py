"""Layout: numbers and tables as all texts for people have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def aligned(rows: Sequence[Sequence[str]], *, right: bool = False) -> Iterator[str]:
    """Rows of cells as lines; columns without any text are left out.

    Args:
        rows: all of the same length.
        right: whether cells end, and not begin, below each other; those of the first column never do.
    """
    widths = [max(len(cell) for cell in column) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = zip(row, widths, strict=True)
        placed = (
            cell.rjust(width) if right and place else cell.ljust(width)
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
