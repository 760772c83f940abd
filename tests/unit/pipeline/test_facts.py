"""What a run says of how it was asked for."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_llmperf.checks.comparability import ASKED_AS
from pytest_llmperf.model.endpoint import Endpoint
from pytest_llmperf.pipeline.campaign import Campaign
from pytest_llmperf.pipeline.facts import asked_as
from pytest_llmperf.pipeline.servers import Server
from tests.unit.pipeline import fakes


def environment(tmp_path: Path, *, endpoint: str | None = None, **fields: Any) -> dict[str, str]:
    """The facts of a run of a campaign."""
    campaign = Campaign(
        baselines=tmp_path, save=tmp_path, seed=7, accept="none", why="", endpoint=endpoint, arguments="", family=1,
        show=lambda _: None,
    )  # fmt: skip
    case = fakes.case(tmp_path, fakes.gate("output_throughput"))
    case = replace(case, suite=replace(case.suite, overrides=fields.pop("overrides", {})), **fields)
    server = Server(
        arm=campaign.subject(case),
        endpoint=Endpoint(url="http://127.0.0.1:9", model="m"),
        process=None,
        folder=tmp_path,
        session="s",
        key="k",
        ready_s=0.0,
    )
    return dict(campaign._work(case, ()).environment(server))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, None),
        ({"endpoint": "http://127.0.0.1:9"}, "endpoint"),
        ({"apart": True}, "A/B"),
        ({"overrides": {"warmup.requests": "4", "engines.new.args": "--fast"}},
         "engines.new.args=--fast, warmup.requests=4"),
        ({"apart": True, "overrides": {"slo.ttft": "1s"}}, "A/B, slo.ttft=1s"),
    ],
    ids=str,
)  # fmt: skip
def test_a_run_says_what_the_command_line_changed(fields: dict[str, Any], words: str | None, tmp_path: Path) -> None:
    assert environment(tmp_path, **fields).get(ASKED_AS) == words


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("engines.new.env.HF_TOKEN", "hush"),
        ("engines.new.env", "{MY_TOKEN: hush}"),
        ("engines.new.args", "[--api-key, hush]"),
    ],
)
def test_secrets_of_the_command_line_are_hidden(key: str, value: str, tmp_path: Path) -> None:
    case = fakes.case(tmp_path)
    case = replace(case, suite=replace(case.suite, overrides={key: value}))
    assert asked_as(case, endpoint=False) == f"{key}=(redacted)"
