"""An engine for tests: the fake server as a process that we start, so that its faults are an engine's faults."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pytest_llmperf.engines.base import Ask, EngineOptions
from pytest_llmperf.engines.prefix_cache import prefix_hits
from pytest_llmperf.engines.resolved import flattened
from pytest_llmperf.model.acceptance import Acceptance
from pytest_llmperf.model.command import Command
from pytest_llmperf.model.counters import Counters
from pytest_llmperf.model.prefix_hits import PrefixHits
from pytest_llmperf.model.request_fields import RequestFields
from pytest_llmperf.model.suite import Arm

FAKE_SERVER = Path(__file__).parents[1] / "fake_server.py"


class ScriptedOptions(EngineOptions):
    fault: str = ""
    fault_from: int = 0
    fault_until: int = 0
    first_token_s: float = 0.0
    gap_s: float = 0.004
    cached_tokens: int = -1
    accepts: float = 0.0
    synthetic: bool = False
    """Whether it was told what to accept."""
    count_file: str = ""
    """Gets one line for every start of the server."""


class Scripted:
    Options: ClassVar[type[EngineOptions]] = ScriptedOptions
    Shape: ClassVar[type[EngineOptions]] = EngineOptions

    def unavailable(self, arm: Arm) -> str | None:
        return None

    def prepare(self, arm: Arm, folder: Path) -> None:
        options = ScriptedOptions.model_validate(arm.options)
        if options.count_file:
            with Path(options.count_file).open("a") as file:
                file.write(f"{arm.name}\n")

    def command(self, arm: Arm, folder: Path) -> Command | None:
        options = ScriptedOptions.model_validate(arm.options)
        argv = [sys.executable, str(FAKE_SERVER), "--address-file", str(folder / "address")]
        argv += ["--fault", options.fault, "--fault-from", str(options.fault_from)]
        if options.fault_until:
            argv += ["--fault-until", str(options.fault_until)]
        argv += ["--first-token-s", str(options.first_token_s), "--gap-s", str(options.gap_s)]
        if options.accepts:
            argv += ["--accepts", str(options.accepts)]
        if options.cached_tokens >= 0:
            argv += ["--cached-tokens", str(options.cached_tokens)]
        return Command(argv=tuple(argv))

    def address(self, arm: Arm, folder: Path) -> str | None:
        path = folder / "address"
        return path.read_text() if path.exists() else None

    def fixed_port(self, arm: Arm) -> int | None:
        return None

    def elsewhere(self, arm: Arm) -> str | None:
        return None

    def api_key_env(self, arm: Arm) -> str | None:
        return None

    def request_fields(self, arm: Arm) -> RequestFields:
        return RequestFields()

    def acceptance(self, arm: Arm, before: Counters, after: Counters) -> Acceptance | None:
        steps = int(after.get("fake_steps_total", 0) - before.get("fake_steps_total", 0))
        if steps == 0:
            return None
        accepted = round(after["fake_accepted_total"] - before["fake_accepted_total"])
        synthetic = ScriptedOptions.model_validate(arm.options).synthetic
        return Acceptance(steps=steps, accepted=accepted, drafted=3 * steps, synthetic=synthetic)

    def prefix_hits(self, arm: Arm, before: Counters, after: Counters) -> PrefixHits | None:
        return prefix_hits(before, after)

    def with_less_acceptance(self, arm: Arm, loss: float) -> Arm | None:
        accepts = ScriptedOptions.model_validate(arm.options).accepts - loss
        return replace(arm, options={**arm.options, "accepts": accepts, "synthetic": True}) if accepts > 0 else None

    def identity(self, arm: Arm) -> Mapping[str, str]:
        return {"engine": "scripted", "engine_version": "1"}

    def in_effect(self, arm: Arm, ask: Ask) -> Mapping[str, str] | None:
        return flattened(ScriptedOptions.model_validate(arm.options).model_dump())

    def classify(self, log: str) -> str | None:
        return None
