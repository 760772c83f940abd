"""A measurement: one value per metric and run, with what the judge must know about where it came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Observation:
    """One run's value of one metric.

    ``session`` groups runs of one server start; ``order`` is the run's place in time among all runs of the case.
    """

    value: float
    session: str
    order: int


@dataclass(frozen=True, slots=True)
class Measurement:
    """Values by metric name. A metric that could not be computed is absent, never zero.

    ``invalid`` has the metrics that may not be judged, each with the reason (a client that could not keep up, a warm
    cache): the values are kept, and the judge says INVALID.
    """

    samples: Mapping[str, tuple[Observation, ...]]
    invalid: Mapping[str, str] = field(default_factory=dict)

    def of(self, metric: str) -> tuple[Observation, ...]:
        """The observations of one metric, () when there are none."""
        return self.samples.get(metric, ())

    def mean(self, metric: str) -> float:
        """Arithmetic mean of one metric over all runs.

        Raises:
            KeyError: no run has a value.
        """
        values = [observation.value for observation in self.samples[metric]]
        return sum(values) / len(values)
