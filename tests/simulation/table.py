"""Tallies as rows of a markdown table: per cent, with one standard error."""

from __future__ import annotations

from tests.simulation.rates import Tally, error, rate

_COLUMNS = (
    "world",
    "nights",
    "healthy night red (before confirmation)",
    "one TPOT at 2 x margin: red",
    "at its margin: red / called PASSED",
    "one case at margin: red",
    "all at margin: red",
    "runs a case; settled by one",
)
HEAD = f"| {' | '.join(_COLUMNS)} |\n|{'---|' * len(_COLUMNS)}\n"


def row(name: str, seen: Tally) -> str:
    """One world. Rates of 0 or 100 % have the error of one night."""
    mean_runs, settled = seen["cases: runs"] / seen["cases"], seen["cases: settled by one"] / seen["cases"]
    cells = (
        name,
        str(seen["nights"]),
        f"{_share(seen, 'healthy: red')} ({100 * rate(seen, 'healthy: red before'):.1f})",
        _share(seen, "twice: red"),
        f"{_share(seen, 'margin: red')} / {_share(seen, 'margin: passed')}",
        _share(seen, "case: red"),
        _share(seen, "all: red") if "all: red" in seen else "",
        f"{mean_runs:.2f}; {100 * settled:.0f} %",
    )
    return f"| {' | '.join(cells)} |\n"


def _share(seen: Tally, name: str) -> str:
    share = rate(seen, name)
    return f"{100 * share:.1f} ± {100 * error(share, seen['nights']):.1f} %"
