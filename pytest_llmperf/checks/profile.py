"""Profiles: what can be expected of a class of hardware, so that a part which it lacks is no doubt."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pytest_llmperf.errors import UsageError
from pytest_llmperf.model.finding import Policy
from pytest_llmperf.model.snapshot import Snapshot
from pytest_llmperf.registry import did_you_mean


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """A class of hardware.

    Attributes:
        name: as it is asked for.
        product: a part of the GPU's product name; "" for any, None for machines without.
        nvlinks: links of each GPU on boards with a switch; None where boards differ.
        absent: checks of what the class does not have: not applicable instead of unsupported.
        policies: where a check matters more or less than in general.
    """

    name: str
    product: str | None
    nvlinks: int | None = None
    absent: frozenset[str] = frozenset()
    policies: Mapping[str, Policy] = field(default_factory=dict)

    def fits(self, name: str | None) -> bool:
        """Whether a GPU of this name, or a machine without one, is of the class."""
        if name is None or self.product is None:
            return name is None and self.product is None
        return self.product.lower() in name.lower()


_HOPPER = frozenset({"power_profile", "power_smoothing"})
_CPU: dict[str, Policy] = {
    "cpu_pressure": "warn",
    "governor": "record",
    "numa_balancing": "record",
    "open_files": "record",
    "runtime": "record",
    "transparent_hugepages": "record",
    "turbo": "record",
}
"""Without a GPU what is gated are counts and arms side by side: how the host is tuned is the same for both."""

PROFILES = (
    Profile(name="h200", product="H200", nvlinks=18, absent=_HOPPER),
    Profile(name="h100", product="H100", nvlinks=18, absent=_HOPPER),
    Profile(name="b200", product="B200", nvlinks=18),
    Profile(name="nvidia", product=""),
    Profile(name="cpu", product=None, policies=_CPU),
)
"""Most special first. What is said of a B200 was read in documents; nobody has recorded one."""


def named(name: str) -> Profile:
    """The profile of a class of hardware.

    Raises:
        UsageError: there is none of this name.
    """
    for profile in PROFILES:
        if profile.name == name:
            return profile
    names = [profile.name for profile in PROFILES]
    raise UsageError(f"no profile is called {name!r}{did_you_mean(name, names)}")


def profile_of(snapshot: Snapshot) -> Profile:
    """The first profile that fits the machine: one of its GPUs that says its name, or that it has none."""
    names = sorted(gpu.name.value for gpu in snapshot.gpus if gpu.name.value)
    name = (names or [""])[0] if snapshot.gpus else None
    return next(profile for profile in PROFILES if profile.fits(name))
