"""Laws of noise: what becomes of a standard normal number, each with mean 0 and variance 1."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, stdtrit

Effects = npt.NDArray[np.float64]
"""Effects on the scale of judgement, where larger is worse."""

SIGMA = 0.6
"""Of the log-normal law: skewness 2.3, so that the slow side has the long tail."""


def _normal(z: Effects) -> Effects:
    return z


def _t4(z: Effects) -> Effects:
    return np.asarray(stdtrit(4, ndtr(z)) / math.sqrt(2), dtype=np.float64)


def _log_normal(z: Effects) -> Effects:
    mean, power = math.exp(SIGMA**2 / 2), math.exp(SIGMA**2)
    return np.asarray((np.exp(SIGMA * z) - mean) / math.sqrt((power - 1) * power), dtype=np.float64)


LAWS: Mapping[str, Callable[[Effects], Effects]] = {"normal": _normal, "t4": _t4, "log-normal": _log_normal}
"""By name. Normal numbers that are correlated stay so: each law is a monotone function of them (a Gaussian copula)."""
