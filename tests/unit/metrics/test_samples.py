from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf import metrics
from pytest_llmperf.metrics import samples
from pytest_llmperf.model.records import NEVER, Outcome, Records
from tests.unit.metrics.examples import WINDOW, records, request

CHUNKS = st.lists(st.tuples(st.integers(1, 4000), st.integers(1, 9)), min_size=1, max_size=8)
REQUESTS = CHUNKS.map(lambda made: request(sorted(at for at, _ in made), each=[n for _, n in made]))
SEVERAL = st.lists(REQUESTS, min_size=1, max_size=5).map(lambda made: records(*made))


@given(REQUESTS.map(records))
def test_the_gaps_of_a_request_and_its_ttft_are_its_e2el(one: Records) -> None:
    (ttft,), (e2el,) = samples.ttft_ms(one), samples.e2el_ms(one)
    assert ttft + samples.itl_ms(one).sum() == pytest.approx(e2el)
    assert ttft + samples.token_itl_ms(one).sum() == pytest.approx(e2el)


@given(SEVERAL)
def test_every_token_but_those_of_first_chunks_has_a_gap(several: Records) -> None:
    first = several.chunk_tokens[several.chunk_start[:-1]].sum()
    assert len(samples.token_itl_ms(several)) == several.output_tokens.sum() - first


@given(SEVERAL)
def test_one_token_a_chunk_makes_all_paces_one(several: Records) -> None:
    single = records(*(request((several.chunk_ns[a:b] / 1e6).tolist(), each=[1] * (b - a)) for a, b in zip(
        several.chunk_start[:-1], several.chunk_start[1:], strict=True)))  # fmt: skip
    np.testing.assert_allclose(samples.token_itl_ms(single), samples.itl_ms(single))
    np.testing.assert_allclose(samples.decode_tpot_ms(single), samples.tpot_ms(single))


def test_a_first_chunk_of_several_tokens_does_not_shorten_the_pace() -> None:
    bundled = records(request([100, 120, 140], each=[3, 2, 2]))
    assert samples.tpot_ms(bundled).tolist() == pytest.approx([40 / 6])
    assert samples.decode_tpot_ms(bundled).tolist() == pytest.approx([40 / 4])
    assert samples.token_itl_ms(bundled).tolist() == pytest.approx([10, 10, 10, 10])
    assert samples.itl_ms(bundled).tolist() == pytest.approx([20, 20])


def test_tokens_of_chunks_must_be_known_for_every_successful_request() -> None:
    known, unknown = request([100, 120], each=[1, 2]), request([100, 120])
    failed = request([100, 120], outcome=Outcome.FAILED)
    assert len(samples.token_itl_ms(records(known, failed))) == 2
    assert not len(samples.token_itl_ms(records(known, unknown)))
    assert not len(samples.decode_tpot_ms(records(known, unknown)))


def test_a_closed_loop_has_no_schedule() -> None:
    open_loop = records(request([100], sent_ms=30, scheduled_ms=10), request([200], sent_ms=90, scheduled_ms=90))
    assert samples.ttft_from_schedule_ms(open_loop).tolist() == pytest.approx([90, 110])
    assert samples.ttft_ms(open_loop).tolist() == pytest.approx([70, 110])
    closed = metrics.compute(records(request([100], sent_ms=30)), WINDOW, None)
    assert not [name for name in closed if "from_schedule" in name]


@given(SEVERAL, st.integers(0, 1000))
def test_from_schedule_is_never_shorter_than_from_send(several: Records, late_ms: int) -> None:
    due = records(*(
        request((several.chunk_ns[a:b] / 1e6 + late_ms).tolist(), sent_ms=late_ms, scheduled_ms=0)
        for a, b in zip(several.chunk_start[:-1], several.chunk_start[1:], strict=True)
    ))  # fmt: skip
    assert (samples.e2el_from_schedule_ms(due) >= samples.e2el_ms(due)).all()


def test_unknown_output_is_no_pace() -> None:
    assert not len(samples.tpot_ms(records(request([100, 120], tokens=NEVER))))
