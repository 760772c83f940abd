"""The facts of a run: what tells results apart, by the keys that ``checks.comparability`` knows."""

from __future__ import annotations

import platform
import re
import shlex
from collections.abc import Mapping, Sequence

from pytest_llmperf import __version__
from pytest_llmperf.checks import comparability
from pytest_llmperf.engines.base import engine_of
from pytest_llmperf.model.case import Case, workload_digest
from pytest_llmperf.model.redaction import HIDDEN, SECRET, redacted_value
from pytest_llmperf.model.suite import Arm
from pytest_llmperf.telemetry import host
from pytest_llmperf.telemetry.host import Host


def gather(case: Case, arm: Arm, machine: Host, model_id: str, *, pinned: bool, endpoint: bool) -> Mapping[str, str]:
    """Facts of one arm on ``machine``, before anything about its speed is known.

    ``pinned`` says whether client and engine have cores of their own, ``endpoint`` whether a running server stands for
    the suite's engines.
    """
    engine = engine_of(arm)
    here = engine.elsewhere(arm) is None
    placement = "remote" if not here else "pinned" if pinned else "shared"
    asked = asked_as(case, endpoint=endpoint)
    return {
        "hardware": machine.slug,
        "workload": workload_digest(case.workload, case.load),
        "weights": arm.model.weights,
        "client": "llmperf",
        "client_placement": placement,
        "client_version": __version__,
        "model": model_id,
        "args": shlex.join(redacted_args(arm.args)),
        "options": " ".join(f"{key}={value}" for key, value in sorted({**arm.options, **arm.model.shape}.items())),
        "env": " ".join(f"{key}={redacted_value(key, value)}" for key, value in sorted(arm.env.items())),
        "node": machine.node,
        "python": platform.python_version(),
        "kernel": platform.release(),
        **({"governor": set_by} if here and (set_by := host.governor()) else {}),
        **engine.identity(arm),
        **({} if case.suite.slo is None else {comparability.SLO: str(case.suite.slo)}),
        **({comparability.ASKED_AS: asked} if asked else {}),
    }


def asked_as(case: Case, *, endpoint: bool) -> str:
    """What the command line made of the suite, "" for nothing; values that may hold a secret are hidden."""
    words = [word for word, so in (("endpoint", endpoint), ("A/B", case.apart)) if so]
    return ", ".join([*words, *(_override(key, value) for key, value in sorted(case.suite.overrides.items()))])


def _override(key: str, value: str) -> str:
    """VALUE is YAML: a list of arguments, or a map of variables, may name a secret within."""
    secret = any(SECRET.search(name) for name in (key, *re.findall(r"[\w-]+", value)))
    return f"{key}={HIDDEN if secret else value}"


def redacted_args(args: Sequence[str]) -> list[str]:
    """Arguments without secrets: the value of a flag whose name says that it is one."""
    shown: list[str] = []
    for arg in args:
        flag, equals, _ = arg.partition("=")
        if shown and shown[-1].startswith("-") and "=" not in shown[-1] and SECRET.search(shown[-1]):
            shown.append(HIDDEN)
        elif equals and flag.startswith("-") and SECRET.search(flag):
            shown.append(f"{flag}={HIDDEN}")
        else:
            shown.append(arg)
    return shown
