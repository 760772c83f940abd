"""Whether a candidate may be compared with a baseline, and which differences a reader must see.

Facts are strings by key, as in ``Run.environment``. Three lists decide: a difference in ``REFUSE`` forbids the
comparison (NO BASELINE), one in ``COMPARE`` is what a test is often for and is shown beside the verdict, anything else
is ignored.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from pytest_llmperf.checks.hardware import CLASS, differences
from pytest_llmperf.model.slo import GOODPUT

ANY_HARDWARE = "any"
"""Hardware of a baseline of counts, which no machine moves."""

REFUSE: Mapping[str, str] = {
    "hardware": "hardware class, as in baseline paths (8x-nvidia-h200)",
    "workload": "digest of what is asked, without the seed",
    "weights": "real, dummy or synthetic",
    "acceptance": "of speculative decoding: synthetic or not; a loss made on purpose may be synthetic",
    "client": "kind of load generator",
    "client_placement": "where its processes run beside the engine (pinned, shared, remote)",
}
"""Facts that must be equal, with what each says."""

TIMING_ONLY = ("client", "client_placement")
"""Facts of ``REFUSE`` that can move a time but not a count."""

CONDITION = "machine."
"""Facts whose names begin so are what the machine was like: its hardware class (``checks.hardware``), and the checks
that the suite compares (``checks.conditions``). They must be equal where both sides state them, and the class also
where only the baseline does."""

ENGINE = (
    "engine", "engine_version", "image", "model", "model_revision", "model_digest", "args", "options", "env",
    "environment",
)  # fmt: skip
MACHINE = ("node", "gpu", "driver", "cuda", "governor")
BUILD = (*ENGINE, "driver")
"""Facts that are equal in one build: the noise between its starts, on whatever nodes of a class, is its own."""

SLO = "slo"
"""The limits of goodput: what else was measured is comparable whatever they were."""
OUTPUT = "output_tokens"
"""Of natural output: tokens of a run in all, the mean over runs; compared within a tolerance, and not shown."""

OUTPUT_TOLERANCE = 0.01
"""Share by which the output of two runs of natural output may differ."""

INJECTED = "injected"
"""A loss that was made on purpose."""

ASKED_AS = "asked_as"
"""What the command line made of a suite for one session (``endpoint``, ``A/B``, KEY=VALUE); absent without."""

SUBJECT = (ASKED_AS, "engine")
"""Facts that must be equal for sessions to be nights of one case: other ones are of another subject."""

COMPARE = (*ENGINE, *MACHINE, SLO, INJECTED)
"""Facts that are stored with a baseline and shown when they differ, in the order in which they are shown."""


def refusals(baseline_facts: Mapping[str, str], facts: Mapping[str, str]) -> list[str]:
    """Why the candidate may not be compared: one text per fact of ``REFUSE`` or ``CONDITION`` that differs.

    A fact that the baseline does not state does not matter to it (``TIMING_ONLY`` facts of counts); one that only the
    candidate lacks is unknown, and so not equal.
    """
    reasons = []
    for key in REFUSE:
        wanted, found = baseline_facts.get(key), facts.get(key, "unknown")
        if wanted is None or wanted == found or (key == "hardware" and wanted == ANY_HARDWARE):
            continue
        if key == "acceptance" and ({wanted, found} == _REAL or _may_be_synthetic(wanted, found, facts)):
            continue
        reasons.append(f"{key}: baseline {_short(wanted)}, here {_short(found)}")
    return [*reasons, *_conditions(baseline_facts, facts)]


def other_subject(wanted: Mapping[str, str], facts: Mapping[str, str]) -> list[str]:
    """Why a session is no night of the same thing: one text per fact of ``SUBJECT`` that differs."""
    return [
        f"{key}: {facts.get(key) or 'plain'}, not {wanted.get(key) or 'plain'}"
        for key in SUBJECT
        if (facts.get(key) or "") != (wanted.get(key) or "")
    ]


def other_build(wanted: Mapping[str, str], facts: Mapping[str, str]) -> list[str]:
    """Why a session is none of the same build: one text per fact of ``BUILD`` that differs."""
    differing = changed(wanted, facts)
    return [f"{key}: {differing[key][1]}, not {differing[key][0]}" for key in BUILD if key in differing]


def _conditions(baseline_facts: Mapping[str, str], facts: Mapping[str, str]) -> Iterator[str]:
    before, here = conditions_of(baseline_facts), conditions_of(facts)
    yield from differences({name: value for name, value in before.items() if name in CLASS}, here)
    for name, wanted in before.items():
        if name not in CLASS and (found := here.get(name, wanted)) != wanted:
            yield f"{name}: baseline {wanted}, here {found}"


def conditions_of(facts: Mapping[str, str]) -> dict[str, str]:
    """What the machine was like, by name of the fact or of the check."""
    return {key.removeprefix(CONDITION): value for key, value in facts.items() if key.startswith(CONDITION)}


_REAL = {"natural", "none"}
"""Of acceptance: speculation that is on against off is what a comparison may be for."""


def _may_be_synthetic(wanted: str, found: str, facts: Mapping[str, str]) -> bool:
    """Whether acceptance was lost on purpose: most engines can lose it only by being told what to accept."""
    told = facts.get(INJECTED, "").startswith("acceptance=")
    return told and (wanted, found) == ("natural", "synthetic")


def refused_goodput(baseline_environment: Mapping[str, str], facts: Mapping[str, str]) -> dict[str, str]:
    """The metrics of goodput, each with the reason, when baseline and candidate were measured with other limits."""
    wanted, found = baseline_environment.get(SLO, "none"), facts.get(SLO, "none")
    return {} if wanted == found else dict.fromkeys(GOODPUT, f"{SLO}: baseline {wanted}, here {found}")


def refused_output(reference: Mapping[str, str], candidate: Mapping[str, str]) -> str:
    """Why answers of natural output were other work than the reference's, "" when they were not.

    A reference that does not say how many tokens it had (exact output, an older baseline) does not matter.
    """
    wanted, found = reference.get(OUTPUT), candidate.get(OUTPUT)
    if wanted is None:
        return ""
    before, here = tokens_of(wanted), tokens_of(found or "")
    if before is None or here is None:
        return f"{OUTPUT}: reference {wanted}, here {found or 'unknown'}"
    return output_differs(before, here)


def tokens_of(written: str) -> float | None:
    """The number that a fact ``OUTPUT`` says; None for a text that is no positive finite number."""
    try:
        tokens = float(written)
    except ValueError:
        return None
    return tokens if 0 < tokens < math.inf else None


def output_differs(reference_tokens: float, tokens: float) -> str:
    """Why two runs of ``output: natural`` are not comparable, "" when they are.

    Args:
        reference_tokens: output tokens of a run in all, the mean over the reference's runs.
        tokens: the same of the candidate, for as many requests.
    """
    if abs(tokens - reference_tokens) <= OUTPUT_TOLERANCE * reference_tokens:
        return ""
    return (
        f"{tokens:.0f} output tokens a run, reference {reference_tokens:.0f}, more than {OUTPUT_TOLERANCE:.0%} apart: "
        "answers of other lengths are other work; ask for exact output"
    )


def changed(reference: Mapping[str, str], candidate: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Facts of ``COMPARE`` that differ: key -> (reference, candidate), in the order of the list.

    What an engine does not say of its configuration is "none" (no arguments, no image), so that an added argument
    shows; a fact of the machine is compared where both sides state it, since counts are stored without. A side without
    any fact cannot differ.
    """
    if not reference or not candidate:
        return {}
    differing = {}
    for key in COMPARE:
        before, after = reference.get(key) or "none", candidate.get(key) or "none"
        unknown = key in MACHINE and "none" in (before, after)
        if before != after and not unknown:
            differing[key] = (before, after)
    return differing


def spread(environments: Iterable[Mapping[str, str]]) -> dict[str, dict[str, int]]:
    """Facts of ``COMPARE`` that are not the same in all of ``environments``: key -> value -> in how many.

    What none of them would say is "none", as in ``changed``; a fact of the machine counts where it is stated.
    """
    found = list(environments)
    counted = {key: Counter(facts.get(key) or "none" for facts in found) for key in COMPARE}
    for key in MACHINE:
        counted[key].pop("none", None)
    return {key: dict(values) for key, values in counted.items() if len(values) > 1}


def _short(value: str) -> str:
    """A digest as people compare it; anything else as it is."""
    return f"{value[:19]}…" if value.startswith("sha256:") and len(value) > 20 else value  # noqa: PLR2004
