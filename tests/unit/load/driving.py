"""A small plan, and a drive with bounds that fit tests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pytest_llmperf import load
from pytest_llmperf.model.endpoint import Endpoint
from pytest_llmperf.model.request_fields import RequestFields
from pytest_llmperf.model.suite import Load, Workload
from pytest_llmperf.workload import Material, plan
from pytest_llmperf.workload.planner import USUAL_FIELDS
from tests.fake_server import FakeServer

TOKENS = 8
CLOSED = Load(kind="concurrency", value=2)


def planned(requests: int = 6, how: Load = CLOSED, taken: RequestFields = USUAL_FIELDS, **fields: Any) -> Any:
    usual = {"kind": "words", "input_tokens": 8, "output_tokens": TOKENS}
    material = fields.pop("material", Material())
    workload = Workload(name="w", requests=requests, **{**usual, **fields})
    return plan(workload, how, seed=1, model_id="fake", material=material, fields=taken)


def drive(
    server: FakeServer,
    folder: Path,
    what: Any = None,
    *,
    alive: Callable[[], bool] = lambda: True,
    stall_timeout_s: float = 20,
    request_timeout_s: float = 20,
    **options: Any,
) -> load.Capture:
    endpoint = Endpoint(url=server.url, model="fake", api_key_env=options.pop("api_key_env", None))
    return load.drive(
        what or planned(),
        endpoint,
        folder,
        stall_timeout_s=stall_timeout_s,
        request_timeout_s=request_timeout_s,
        alive=alive,
        **options,
    )
