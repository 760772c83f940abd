"""A measurement: one value per metric and run, with what the judge must know about where it came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


@dataclass(frozen=True, slots=True)
class Observation:
    """One run's value of one metric.

    ``session`` groups runs of one server start; ``order`` is the run's place in time among all runs of the case.
    """

    value: float
    session: str
    order: int


class OneRun(NamedTuple):
    """One run's values of all metrics, and those that may not be judged, each with the reason."""

    session: str
    order: int
    values: Mapping[str, float]
    invalid: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Measurement:
    """Values by metric name. A metric that could not be computed is absent, never zero.

    ``invalid`` has the metrics that may not be judged, each with the reason (a client that could not keep up, a warm
    cache): the values are kept, and the judge says INVALID.
    """

    samples: Mapping[str, tuple[Observation, ...]]
    invalid: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_runs(cls, runs: Iterable[OneRun]) -> Measurement:
        """The values of ``runs``, in their order; what is invalid in one run is so, with the reason of the first."""
        samples: dict[str, list[Observation]] = {}
        invalid: dict[str, str] = {}
        for run in runs:
            invalid = {**run.invalid, **invalid}
            for name, value in run.values.items():
                samples.setdefault(name, []).append(Observation(value, run.session, run.order))
        return cls({name: tuple(values) for name, values in samples.items()}, invalid)

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
