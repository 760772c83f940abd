"""A watch over GPUs while something loads them: two looks at the machine, and the sampler in between."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Self

from pytest_llmperf.clock import CLOCK, Clock
from pytest_llmperf.model.telemetry import Telemetry
from pytest_llmperf.telemetry import counters, machine, samples_file
from pytest_llmperf.telemetry.assembly import Look, assemble
from pytest_llmperf.telemetry.samples_file import Sampled
from pytest_llmperf.telemetry.sampling import Sampling


class Watch:
    """A context; within it ``window`` is the context of what is measured. Costs a second or two on either side.

    Args:
        uuids: of the GPUs, at least one.
        interval_s: from one look of the sampler to the next.
        folder: gets the samples.
        cores: of this machine, on which the sampler runs; () for any.
        clock: for the looks at the machine.
    """

    def __init__(
        self, uuids: Sequence[str], *, interval_s: float, folder: Path, cores: Sequence[int] = (), clock: Clock = CLOCK
    ) -> None:
        self._uuids = tuple(uuids)
        self._interval_ns = round(interval_s * 1e9)
        self._file = folder / samples_file.NAME
        self._clock = clock
        self._sampling = Sampling(self._uuids, self._interval_ns, self._file, cores)
        self._before: Look | None = None

    def __enter__(self) -> Self:
        self._before = self._look()
        self._sampling.__enter__()
        return self

    def window(self) -> AbstractContextManager[None]:
        """What lasts as long as the measured window."""
        return self._sampling.window()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._sampling.__exit__(kind, error, trace)

    @property
    def fault(self) -> str:
        """What went wrong with the sampler, "" for nothing."""
        return self._sampling.fault

    def seen(self) -> Sampled:
        """What the sampler saw; after the context."""
        return samples_file.read(self._file, self._uuids)

    def telemetry(self, window_ns: tuple[int, int]) -> Telemetry:
        """Everything about the window; after the context."""
        assert self._before is not None  # noqa: S101 (for the type checker)
        return assemble(
            self.seen(),
            window_ns=window_ns,
            interval_ns=self._interval_ns,
            before=self._before,
            after=self._look(),
        )

    def _look(self) -> Look:
        at_ns = self._clock.monotonic_ns()
        snapshot = machine.read(idle_s=0, settle_s=0, clock=self._clock)
        # a driver that did not answer the bounded question is not asked one without a bound
        return Look(at_ns=at_ns, snapshot=snapshot, counters=counters.read() if snapshot.gpus else {})
