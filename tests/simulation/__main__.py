"""``python -m tests.simulation --nights 5000``: the error rates of docs/verdicts.md, as a markdown table."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import partial

from tests.simulation.rates import Tally, tally
from tests.simulation.table import HEAD, row
from tests.simulation.worlds import WORLDS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("worlds", nargs="*", metavar="WORLD", help=f"of: {', '.join(WORLDS)} (default: all)")
    parser.add_argument("--nights", type=int, default=5000)
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    unknown = set(options.worlds) - set(WORLDS)
    if unknown:
        parser.error(f"no such world: {', '.join(sorted(unknown))}")
    sys.stdout.write(HEAD)
    with ProcessPoolExecutor(options.processes) as pool:
        for name in options.worlds or WORLDS:
            parts = [range(i, options.nights, options.processes) for i in range(options.processes)]
            seen: Tally = sum(pool.map(partial(tally, WORLDS[name]), parts), Counter())
            sys.stdout.write(row(name, seen))
            sys.stdout.flush()


if __name__ == "__main__":
    main()
