"""The worlds that the error rates are shown in, by name."""

from __future__ import annotations

from collections.abc import Mapping

from tests.simulation.world import World

WORLDS: Mapping[str, World] = {
    "normal noise": World(everywhere=True),
    "10 baseline sessions": World(sessions=10),
    "5 baseline sessions": World(sessions=5),
    "heavy tails (t4)": World(law="t4"),
    "strong skew (log-normal)": World(law="log-normal"),
    "2 % of sessions slowed by 8 %": World(slowed=0.02),
    "3 % drift over the baseline": World(drift=0.03),
    "nights correlated (.5)": World(autocorrelation=0.5),
    "a restart renews only .3": World(renewed=0.3),
    "true rho .8": World(rho=0.8),
    "true rho .8, 3 runs a session": World(rho=0.8, runs=3),
    "true rho .2, 3 runs a session": World(rho=0.2, runs=3),
    "anchor and recent sessions": World(recent=20),
    "anchor and 10 recent sessions": World(recent=10),
    "anchor and 5 recent sessions": World(recent=5),
    "anchor and 3 recent sessions": World(recent=3),
    "true rho .8, anchor and recent sessions": World(rho=0.8, recent=20),
    "true rho .8, anchor and 5 recent sessions": World(rho=0.8, recent=5),
}
