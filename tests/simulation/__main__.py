"""The error rates of docs/verdicts.md, as markdown tables: ``python -m tests.simulation --nights 5000``."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.simulation import changes, pairs, recorded
from tests.simulation.rates import Tally, tally
from tests.simulation.table import HEAD, row
from tests.simulation.world import World
from tests.simulation.worlds import WORLDS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help=f"of: {', '.join(WORLDS)} (default: all)")
    parser.add_argument("--nights", type=int, default=5000, help="nights, or comparisons, or histories")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument(
        "--table",
        choices=["nights", "h200", "pairs", "changes"],
        default="nights",
        help="h200: noise recorded on an H200, calibrated margins; pairs: engines by turns, pooled requests;"
        " changes: change points in histories",
    )
    options = parser.parse_args()
    unknown = set(options.worlds) - set(WORLDS)
    if unknown:
        parser.error(f"no such world: {', '.join(sorted(unknown))}")
    if options.table in {"pairs", "changes"}:
        sys.stdout.write((pairs if options.table == "pairs" else changes).table(options.nights))
        return
    with ProcessPoolExecutor(options.processes) as pool:
        parts = [range(i, options.nights, options.processes) for i in range(options.processes)]

        def counted(count: Callable[[World, range], Tally], world: World) -> Tally:
            return sum(pool.map(partial(count, world), parts), Counter())

        if options.table == "h200":
            sys.stdout.write(recorded.table(counted(recorded.tally, recorded.H200)))
            return
        sys.stdout.write(HEAD)
        for name in options.worlds or WORLDS:
            sys.stdout.write(row(name, counted(tally, WORLDS[name])))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
