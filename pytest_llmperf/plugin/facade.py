"""What the fixtures hand to a test: a facade over one suite, and a started server."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf import judge, suitefile
from pytest_llmperf.errors import EngineError, LlmperfError, UnavailableError, UsageError
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.counters import Counters
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.verdict import Verdict
from pytest_llmperf.pipeline.servers import Server
from pytest_llmperf.plugin.state import State


@dataclass(frozen=True, slots=True)
class Marked:
    """What ``@pytest.mark.llmperf(suite=..., engine=...)`` says of a test."""

    suite: Path | None = None
    engine: str | None = None

    @classmethod
    def of(cls, node: pytest.Item) -> Marked:
        """The closest marker of a test; its path is relative to the rootdir."""
        marker = node.get_closest_marker("llmperf")
        if marker is None:
            return cls()
        unknown = set(marker.kwargs) - {"suite", "engine"}
        if unknown or marker.args:
            raise UsageError(f"{node.nodeid}: the marker llmperf takes suite=PATH and engine=ARM, nothing else")
        suite = marker.kwargs.get("suite")
        return cls(None if suite is None else node.config.rootpath / suite, marker.kwargs.get("engine"))


class Llmperf:
    """Measure cases of a suite and judge the measurements."""

    def __init__(self, state: State, marked: Marked) -> None:
        self._state = state
        self._marked = marked
        self._gates: tuple[Gate, ...] = ()

    def measure(
        self,
        case: str | None = None,
        *,
        suite: str | Path | None = None,
        engine: str | None = None,
        args: Sequence[str] = (),
        runs: int = 1,
    ) -> Measurement:
        """Start the arm, warm it up and measure ``runs`` runs of one case; skips the test where it cannot run here.

        What the runs' validity forbids to judge is kept in ``Measurement.invalid``; ``judge`` says INVALID of it.

        Args:
            case: its id; may be left out where the suite has one case for the arm.
            suite: a suite file, relative to the rootdir; the marker's by default.
            engine: an arm of the suite; the marker's, or the default arm.
            args: arguments appended to the arm's.
            runs: how many runs, each with prompts of its own.

        Raises:
            UsageError: no suite is named, or no or several cases fit.
        """
        chosen = _case(self._state, self._marked, case, suite, engine)
        if args:
            chosen = replace(chosen, arm=replace(chosen.arm, args=(*chosen.arm.args, *args)))
        self._gates = chosen.plain_gates
        with _outcomes(self._state, chosen):
            return self._state.campaign.measure_only(chosen, runs)

    def judge(
        self, reference: Measurement, candidate: Measurement, gates: Sequence[Gate] | None = None
    ) -> dict[str, Verdict]:
        """Verdicts by metric: ``candidate`` against ``reference``, by ``gates`` or those of the case measured last."""
        if gates is None:
            if not self._gates:
                raise UsageError("llmperf.judge: measure a case first, or pass gates=")
            gates = self._gates
        return {verdict.metric: verdict for verdict in judge.judge(reference, candidate, gates)}


class EngineServer:
    """A ready engine.

    Attributes:
        url: base URL, without ``/v1``.
        model: the id to put into requests.
        log: its log file; None where somebody else started it.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self.url = server.endpoint.url
        self.model = server.endpoint.model
        self.log = server.log

    @classmethod
    def start(cls, state: State, marked: Marked) -> EngineServer:
        """The server of the marked suite and arm, started when it is not running yet."""
        case = _case(state, marked)
        with _outcomes(state, case):
            return cls(state.campaign.start(case))

    def metrics(self) -> Counters | None:
        """Its counters now, by series; None when it has no metrics page."""
        return self._server.counters()


@contextmanager
def _outcomes(state: State, case: Case) -> Iterator[None]:
    """Skip what cannot run here; show a broken engine with its log instead of our own frames."""
    if reason := state.campaign.unavailable(case):
        pytest.skip(reason)
    try:
        yield
    except UnavailableError as error:
        pytest.skip(str(error))
    except EngineError as error:
        pytest.fail(error.describe(), pytrace=False)
    finally:
        state.progress.clear()


def _case(
    state: State,
    marked: Marked,
    case: str | None = None,
    suite: str | Path | None = None,
    engine: str | None = None,
) -> Case:
    if state.options.ab is not None:
        raise UsageError(
            f"--llmperf-ab={','.join(state.options.ab)} is for the cases of suites; the fixtures measure the arm that"
            " their test names"
        )
    path = marked.suite if suite is None else state.rootpath / suite
    if path is None:
        raise UsageError("which suite? write @pytest.mark.llmperf(suite='path/to/x.llmperf.yaml') or pass suite=")
    parsed = suitefile.load_suite(path, overrides=state.options.overrides, environ=os.environ)
    arm = engine or marked.engine
    found = [each for each in suitefile.expand(parsed, engines=(arm,) if arm else ()) if case in {None, each.id}]
    if len(found) != 1:
        ids = ", ".join(each.id for each in found) or "none"
        raise UsageError(f"{path}: one case is needed and {len(found)} fit ({ids}); name one with case= and engine=")
    return found[0]


def needed_case(state: State, item: pytest.Item) -> Case | None:
    """The case whose server ``item`` asks for by its fixtures, None when it asks for none."""
    fixtures: Any = getattr(item, "fixturenames", ())
    if not {"engine_server", "llmperf"} & set(fixtures):
        return None
    try:
        return _case(state, Marked.of(item))
    except LlmperfError:  # the test itself will say so
        return None
