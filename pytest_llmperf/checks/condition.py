"""A condition of a machine: how it is looked at in a snapshot, and how what is seen becomes a finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pytest_llmperf.checks.profile import Profile
from pytest_llmperf.model.expectation import Expectation
from pytest_llmperf.model.finding import Finding, Policy, Status
from pytest_llmperf.model.gpu import Gpu
from pytest_llmperf.model.reading import Answer, Reading
from pytest_llmperf.model.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What is looked at, for what purpose.

    Attributes:
        snapshot: of the machine; its GPUs are those that the case uses, by number.
        profile: of its class.
        gpus: how many the case asks for; with one, nothing between GPUs matters.
        nodes: how many machines it spans.
        own: numbers of the engine's processes; none before it is started.
        earlier: the same machine before, for what has grown since.
        baseline: facts that were stored with the baseline (``conditions.facts``).
        expectations: of the suite, by name of the check.
    """

    snapshot: Snapshot
    profile: Profile
    gpus: int = 0
    nodes: int = 1
    own: frozenset[int] = frozenset()
    earlier: Snapshot | None = None
    baseline: Mapping[str, str] = field(default_factory=dict)
    expectations: Mapping[str, Expectation] = field(default_factory=dict)

    def before(self, gpu: Gpu) -> Gpu | None:
        """The GPU in the earlier snapshot."""
        gpus = () if self.earlier is None else self.earlier.gpus
        return next((each for each in gpus if each.uuid == gpu.uuid), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What one look found.

    Attributes:
        fact: the same for machines that are the same in this: what is compared, with a baseline or a suite's value.
        remedy: ``{gpus}`` stands for the numbers of the GPUs that it is for, ``VALUE`` for what a suite asks for.
    """

    status: Status
    value: str
    fact: str = ""
    expected: str = ""
    evidence: str = ""
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """A row of the table of checks."""

    name: str
    policy: Policy
    look: Callable[[Subject], Seen]


_DOUBT = {
    Answer.UNSUPPORTED: Status.UNSUPPORTED,
    Answer.NOT_PERMITTED: Status.NOT_PERMITTED,
    Answer.UNKNOWN: Status.UNKNOWN,
    Answer.FAILED: Status.FAIL,
}

_WORST_FIRST = (
    Status.FAIL, Status.UNKNOWN, Status.NOT_PERMITTED, Status.UNSUPPORTED, Status.PASS, Status.NOT_APPLICABLE,
)  # fmt: skip


def unread(reading: Reading[Any], expected: str = "") -> Seen:
    """A fact that is not known. A device that says that it is broken has failed every check."""
    failed = reading.answer is Answer.FAILED
    return Seen(
        status=_DOUBT[reading.answer],
        value="the GPU does not answer" if failed else str(reading.answer),
        expected=expected,
        evidence=reading.evidence,
        remedy="take it out of use; it needs a reset or a reboot" if failed else "",
    )


def verdict(
    good: bool, value: str, *, expected: str, reading: Reading[Any], remedy: str = "", fact: str | None = None
) -> Seen:
    """A fact that is known, and whether it is as it must be."""
    return Seen(
        status=Status.PASS if good else Status.FAIL,
        value=value,
        fact=value if fact is None else fact,
        expected=expected,
        evidence=reading.evidence,
        remedy=remedy,
    )


def not_applicable(why: str) -> Seen:
    """A question that makes no sense here."""
    return Seen(status=Status.NOT_APPLICABLE, value=why)


def each_gpu(look: Callable[[Gpu, Subject], Seen]) -> Callable[[Subject], Seen]:
    """A look at every GPU of the case, as one: the worst counts, and the GPUs that differ are named."""

    def whole(subject: Subject) -> Seen:
        gpus = subject.snapshot.gpus
        return _merged([(gpu, look(gpu, subject)) for gpu in gpus]) if gpus else not_applicable("no GPU")

    return whole


def between_gpus(look: Callable[[Subject], Seen]) -> Callable[[Subject], Seen]:
    """A look that only several GPUs are worth."""

    def several(subject: Subject) -> Seen:
        if subject.gpus < 2:  # noqa: PLR2004
            return not_applicable("one GPU is asked for" if subject.gpus else "no GPU is asked for")
        return look(subject)

    return several


def _merged(looks: Sequence[tuple[Gpu, Seen]]) -> Seen:
    worst = min((seen.status for _, seen in looks), key=_WORST_FIRST.index)
    concerned = [(gpu, seen) for gpu, seen in looks if seen.status is worst]
    first = concerned[0][1]
    facts = Counter(seen.fact for _, seen in looks)
    numbers = ",".join(str(gpu.index) for gpu, _ in concerned)
    return replace(
        first,
        value=_worded(looks),
        fact=next(iter(facts)) if len(facts) == 1 else ", ".join(f"{n}x {fact}" for fact, n in sorted(facts.items())),
        remedy=first.remedy.replace("{gpus}", numbers),
    )


def _worded(looks: Sequence[tuple[Gpu, Seen]]) -> str:
    """The value where all agree; else each value with its GPUs, the worst first."""
    groups: dict[tuple[int, str], list[Gpu]] = {}
    for gpu, seen in looks:
        groups.setdefault((_WORST_FIRST.index(seen.status), seen.value), []).append(gpu)
    if len(groups) == 1:
        return looks[0][1].value
    *others, (last, rest) = sorted(groups.items(), key=lambda group: group[0])
    named = [f"{', '.join(map(str, gpus))}: {value}" for (_, value), gpus in others]
    return "; ".join([*named, f"the other {len(rest)}: {last[1]}"])


def finding(condition: Condition, subject: Subject) -> Finding | None:
    """What the condition is on this machine; None where the suite does not want to know."""
    expectation = subject.expectations.get(condition.name, Expectation())
    policy = expectation.policy or subject.profile.policies.get(condition.name, condition.policy)
    if policy == "ignore":
        return None
    seen = condition.look(subject)
    if condition.name in subject.profile.absent and seen.status is Status.UNSUPPORTED:
        seen = replace(seen, status=Status.NOT_APPLICABLE, value=f"not part of this hardware ({subject.profile.name})")
    if expectation.value is not None:
        seen = _against(seen, expectation.value)
    elif policy == "compare":
        seen = _compared(seen, subject.baseline.get(condition.name))
    return Finding(
        check=condition.name,
        status=seen.status,
        policy=policy,
        value=seen.value,
        expected=f"{seen.expected} ({expectation.reason})" if expectation.reason else seen.expected,
        evidence=seen.evidence,
        remedy=seen.remedy,
    )


def _against(seen: Seen, wanted: str) -> Seen:
    """Judged by the suite's value instead of the check's own rule; what is not known cannot be."""
    if seen.status not in {Status.PASS, Status.FAIL} or not seen.fact:
        return replace(seen, expected=wanted)
    same = seen.fact.lower() == wanted.lower()
    remedy = seen.remedy.replace("VALUE", wanted)
    return replace(seen, status=Status.PASS if same else Status.FAIL, expected=wanted, remedy=remedy)


def _compared(seen: Seen, baseline: str | None) -> Seen:
    """Judged by the baseline's fact where there is one; else by the check's own rule."""
    if baseline is None or seen.status not in {Status.PASS, Status.FAIL}:
        return seen
    same = seen.fact == baseline
    return replace(seen, status=Status.PASS if same else Status.FAIL, expected=f"{baseline}, as in the baseline")
