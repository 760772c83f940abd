"""The facts of a run: what tells results apart, by the keys that ``checks.comparability`` knows."""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Mapping

from pytest_llmperf import __version__, registry
from pytest_llmperf.checks import comparability
from pytest_llmperf.engines.base import Engine
from pytest_llmperf.model.case import Case, workload_digest
from pytest_llmperf.model.suite import Arm
from pytest_llmperf.telemetry.host import Host


def gather(case: Case, arm: Arm, host: Host, model_id: str) -> Mapping[str, str]:
    """Facts of one arm on this host, before anything about its speed is known."""
    engine: Engine = registry.load("engine", arm.engine)()
    return {
        "hardware": host.slug,
        "workload": workload_digest(case.workload, case.load),
        "weights": arm.model.weights,
        "client": "llmperf",
        "client_placement": "shared",
        "client_version": __version__,
        "model": model_id,
        "args": shlex.join(arm.args),
        "options": " ".join(f"{key}={value}" for key, value in sorted({**arm.options, **arm.model.shape}.items())),
        "env": " ".join(f"{key}={redacted(key, value)}" for key, value in sorted(arm.env.items())),
        "node": host.node,
        "python": platform.python_version(),
        "kernel": platform.release(),
        **engine.identity(arm),
        **({} if case.suite.slo is None else {comparability.SLO: str(case.suite.slo)}),
    }


SECRET = re.compile(r"TOKEN|KEY|SECRET|PASSW", re.IGNORECASE)


def redacted(name: str, value: str) -> str:
    """The value of a variable, unless its name says that it is nobody's business."""
    return "(redacted)" if SECRET.search(name) else value
