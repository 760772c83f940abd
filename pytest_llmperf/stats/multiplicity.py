"""Adjustment of p-values when several tests are made at once."""

from __future__ import annotations

from collections.abc import Sequence


def benjamini_hochberg(p: Sequence[float]) -> list[float]:
    """Adjusted p-values in the order given: ``q_(i) = min over j >= i of p_(j) M / j``, at most 1.

    While every null hypothesis is true, rejecting where ``q <= a`` is wrong at all with probability at most ``a``
    (under independence or positive dependence). Source: Benjamini and Hochberg 1995; equals
    ``scipy.stats.false_discovery_control(p, method="bh")``.
    """
    adjusted = [1.0] * len(p)
    smallest = 1.0
    rank = len(p)
    for index in sorted(range(len(p)), key=p.__getitem__, reverse=True):
        smallest = min(smallest, p[index] * len(p) / rank)
        adjusted[index] = smallest
        rank -= 1
    return adjusted
