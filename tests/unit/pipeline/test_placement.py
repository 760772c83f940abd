from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.model.suite import Arm, Model
from pytest_llmperf.pipeline import servers
from pytest_llmperf.pipeline.placement import MOST_CLIENT_CORES, Placement, placement

EMBEDDED = Arm(name="e", engine="embedded", model=Model(id="m", weights="synthetic"))


@pytest.mark.parametrize(
    ("cores", "client"),
    [
        (range(2), ()),  # as on two cores ever since: everybody shares them
        (range(3), ()),
        (range(4), (3,)),
        (range(7), (6,)),
        (range(16), (12, 13, 14, 15)),
        (range(128), tuple(range(120, 128))),
        ((8, 2, 9, 3, 5), (9,)),  # as a batch system gives them
    ],
)
def test_the_client_has_the_last_cores_of_those_that_are_ours(cores: Sequence[int], client: tuple[int, ...]) -> None:
    assert placement(cores).client == client


@given(st.sets(st.integers(0, 255), max_size=200))
def test_no_core_is_on_both_sides_and_the_engine_keeps_most(cores: set[int]) -> None:
    found = placement(cores)
    if found == Placement():
        assert len(cores) < 4
        return
    assert set(found.client) | set(found.engine) == cores
    assert len(found.client) + len(found.engine) == len(cores)
    assert 1 <= len(found.client) <= min(MOST_CLIENT_CORES, len(found.engine) / 3)


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_an_engine_of_ours_is_started_off_the_clients_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, *_, last = own = sorted(os.sched_getaffinity(0))
    monkeypatch.setattr(servers, "placement", lambda _: Placement(client=(last,), engine=(first,)))
    server = servers.start(EMBEDDED, tmp_path)
    try:
        assert server.process is not None
        assert os.sched_getaffinity(server.process.pid) == {first}
        assert server.client_cores == (last,)
        assert sorted(os.sched_getaffinity(0)) == own
    finally:
        server.stop()


def test_a_server_of_somebody_else_shares_all_cores(tmp_path: Path) -> None:
    server = servers.start(EMBEDDED, tmp_path)
    try:
        there = Arm(name="x", engine="external", model=EMBEDDED.model, options={"url": server.endpoint.url})
        assert servers.start(there, tmp_path).client_cores == ()
    finally:
        server.stop()
