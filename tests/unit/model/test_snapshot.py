"""Snapshots go to JSON and back whole, and what must not be published is not in them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from types import NoneType
from typing import Any, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_llmperf.model.gpu import Gpu, Memory, Mode, Process
from pytest_llmperf.model.host_facts import HostFacts, InfinibandPort
from pytest_llmperf.model.reading import NOT_READ, Answer, Reading, lacking
from pytest_llmperf.model.redaction import redacted
from pytest_llmperf.model.snapshot import Snapshot

answers = st.sampled_from([answer for answer in Answer if answer is not Answer.KNOWN])
SCALARS = {int: st.integers(), float: st.floats(-1e9, 1e9), bool: st.booleans(), str: st.text(max_size=5)}


def values(of: Any) -> st.SearchStrategy[Any]:
    """Values of an annotation, as JSON may hold them."""
    origin, args = get_origin(of), get_args(of)
    if of in SCALARS:
        return SCALARS[of]
    if isinstance(of, type) and is_dataclass(of):
        return st.builds(of, **{name: values(hint) for name, hint in get_type_hints(of).items()})
    if origin is Mapping:
        return st.dictionaries(values(args[0]), values(args[1]), max_size=2)
    if origin is tuple:
        return st.lists(values(args[0]), max_size=2).map(tuple) if ... in args else st.tuples(*map(values, args))
    return st.one_of(*[st.none() if arg is NoneType else values(arg) for arg in args])


def readings(of: Any) -> st.SearchStrategy[Any]:
    """A reading of the annotated type, or one without a value."""
    known = st.builds(Reading, values(get_args(of)[0]), st.just(Answer.KNOWN), st.text(max_size=5))
    return known | st.builds(lacking, answers, st.text(max_size=5))


def facts(kind: type, **given_: Any) -> st.SearchStrategy[Any]:
    hints = get_type_hints(kind)
    names = [field.name for field in fields(kind) if field.default is NOT_READ]
    assert len(names) > 10
    return st.fixed_dictionaries({}, optional={name: readings(hints[name]) for name in names}).map(
        lambda values: kind(**given_, **values)
    )


@settings(max_examples=40)
@given(facts(Gpu, index=0, uuid="GPU-a"), facts(HostFacts))
def test_every_reading_comes_back_from_json(gpu: Gpu, host: HostFacts) -> None:
    snapshot = Snapshot(taken="2026-11-30T14:11:25+00:00", origin="recorded", host=host, gpus=(gpu,))
    assert Snapshot.from_dict(json.loads(json.dumps(snapshot.to_dict()))) == snapshot


def test_what_was_not_read_is_not_stored_and_comes_back_as_unknown() -> None:
    snapshot = Snapshot(taken="t", origin="synthetic", host=HostFacts(), gpus=(Gpu(index=0, uuid="GPU-a"),))
    plain = snapshot.to_dict()
    assert plain["gpus"] == [{"index": 0, "uuid": "GPU-a"}]
    assert Snapshot.from_dict(plain).gpus[0].persistence == lacking(Answer.UNKNOWN, "not read")


@pytest.mark.parametrize("plain", [{}, {"schema": 2, "taken": "t", "origin": "live", "host": {}}])
def test_another_schema_is_refused(plain: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="this version reads 1"):
        Snapshot.from_dict(plain)


def test_a_wrong_value_is_named() -> None:
    plain = {"schema": 1, "taken": "t", "origin": "live", "host": {}, "gpus": [{"index": "x", "uuid": "u"}]}
    with pytest.raises(ValueError, match=r"gpus\.0\.index"):
        Snapshot.from_dict(plain)


def test_a_case_sees_the_gpus_that_it_leases() -> None:
    gpus = tuple(Gpu(index=index, uuid=f"GPU-{index}") for index in range(4))
    snapshot = Snapshot(taken="t", origin="synthetic", host=HostFacts(), gpus=gpus)
    assert snapshot.of({"GPU-3", "GPU-1"}).gpus == (gpus[1], gpus[3])


def test_a_value_derived_from_no_value_keeps_the_reason() -> None:
    assert Reading(3, evidence="call").to(str) == Reading("3", evidence="call")
    unread: Reading[int] = lacking(Answer.NOT_PERMITTED, "call: 4")
    assert unread.to(str) == lacking(Answer.NOT_PERMITTED, "call: 4")


def test_nothing_of_a_person_a_host_or_a_device_is_published() -> None:
    gpu = Gpu(
        index=3,
        uuid="GPU-6a1c",
        memory=Reading(Memory(total=10, used=1, reserved=1), evidence="nvmlDeviceGetMemoryInfo(GPU-6a1c)"),
        processes=Reading((Process(pid=7, name="/home/ann/bin/python", user="ann"), Process(pid=8))),
        p2p={"GPU-77ff": Reading((0, 0, 0), evidence="nvmlDeviceGetP2PStatus(GPU-6a1c)"), "GPU-gone": NOT_READ},
    )
    environment = {
        "VLLM_API_KEY": "k-123",
        "HF_TOKEN": "t-456",
        "NCCL_DEBUG": "INFO",
        "TRITON_CACHE_DIR": "/home/ann/x",
    }
    host = HostFacts(node="ann-pc", environment=Reading(environment))
    other = Gpu(index=0, uuid="GPU-77ff")
    public = redacted(Snapshot(taken="t", origin="recorded", host=host, gpus=(gpu, other)))
    text = json.dumps(public.to_dict())
    for secret in ("6a1c", "77ff", "GPU-gone", "ann", "k-123", "t-456"):
        assert secret not in text
    assert public.host.environment.value is not None
    assert public.host.environment.value["NCCL_DEBUG"] == "INFO"
    assert public.gpus[0].processes.value is not None
    assert public.gpus[0].processes.value[0].name == "python"
    assert [gpu.uuid for gpu in public.gpus] == ["GPU-3", "GPU-0"]
    assert set(public.gpus[0].p2p) == {"GPU-0", "(redacted)"}


def test_a_field_that_says_nothing_is_not_changed_by_redaction() -> None:
    bare = Snapshot(taken="t", origin="recorded", host=HostFacts(), gpus=(Gpu(index=0, uuid="GPU-0"),))
    assert redacted(bare) == bare
    port = InfinibandPort(device="mlx5_0", port=1, state="ACTIVE", rate_gbps=400)
    host = HostFacts(infiniband=Reading((port,)), transparent_hugepages=Reading("madvise"))
    ecc = Reading(Mode(current=True, pending=False))
    full = replace(bare, host=host, gpus=(Gpu(index=0, uuid="GPU-0", ecc=ecc),))
    assert redacted(full) == full
