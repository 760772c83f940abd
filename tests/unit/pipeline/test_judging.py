"""What a case measures and how that becomes verdicts, with every value scripted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Literal

import pytest

from pytest_llmperf import baseline, judge
from pytest_llmperf.clock import FakeClock
from pytest_llmperf.errors import DeathError
from pytest_llmperf.model.failures import FailureGate
from pytest_llmperf.model.gate import Gate
from pytest_llmperf.model.records import NEVER
from pytest_llmperf.model.verdict import BASELINE, RECENT, Word
from pytest_llmperf.pipeline.execute import Task
from pytest_llmperf.pipeline.measure import INTERLEAVING
from pytest_llmperf.pipeline.ongoing import settle
from pytest_llmperf.pipeline.servers import Server
from tests.unit.history import nights
from tests.unit.history.nights import save
from tests.unit.pipeline.fakes import FACTS, Bench, FakeServers, Script, case, gate

THROUGHPUT = "output_throughput"
WOBBLE = (1.0, 1.01, 0.99, 1.005, 0.995)


def steady(new: float = 100.0, old: float = 100.0) -> Mapping[str, float]:
    return {"new": new, "old": old}


def script_of(speeds: Mapping[str, float]) -> Script:
    """The speed of each arm, with a little noise."""

    def script(task: Task, server: Server) -> Mapping[str, float]:
        return {THROUGHPUT: speeds.get(server.arm.name, 100.0) * WOBBLE[task.order % len(WOBBLE)]}

    return script


def within(tmp_path: Path, new: float, **fields: object) -> Bench:
    return Bench(tmp_path, case(tmp_path, gate(THROUGHPUT, 0.2, reference="old")), script_of(steady(new)), **fields)  # type: ignore[arg-type]


def test_both_sides_are_warm_before_the_first_turn_and_take_turns(tmp_path: Path) -> None:
    bench = within(tmp_path, 100)
    assert bench.verdicts()[THROUGHPUT].word is Word.PASSED
    roles = [task.role for task in bench.tasks]
    first = roles.index("reference")
    assert set(roles[:first]) == {"warmup"}
    assert "warmup" not in roles[first:]
    assert roles[first:] == [{"A": "reference", "B": "candidate"}[side] for side in 2 * INTERLEAVING]
    orders = [task.order for task in bench.tasks if task.role != "warmup"]
    assert orders == sorted(set(orders))


def test_no_two_runs_share_a_seed(tmp_path: Path) -> None:
    bench = within(tmp_path, 50)
    bench.judge()
    seeds = [task.seed for task in bench.tasks]
    assert len(seeds) == len(set(seeds))


def test_a_red_is_confirmed_by_a_pair_after_a_fresh_start(tmp_path: Path) -> None:
    bench = within(tmp_path, 50)
    verdict = bench.verdicts()[THROUGHPUT]
    assert verdict.word is Word.REGRESSED
    assert verdict.confirmation == pytest.approx(-0.5, abs=0.05)
    assert bench.roles()[-2:] == ["confirmation", "confirmation"]
    assert bench.servers.starts == 3


def test_a_red_that_a_fresh_start_does_not_show_is_inconclusive(tmp_path: Path) -> None:
    def script(task: Task, server: Server) -> Mapping[str, float]:
        slow = server.arm.name == "new" and task.role == "candidate"
        return {THROUGHPUT: (50 if slow else 100) * WOBBLE[task.order % 5]}

    bench = Bench(tmp_path, case(tmp_path, gate(THROUGHPUT, 0.2, reference="old")), script)
    verdict = bench.verdicts()[THROUGHPUT]
    assert verdict.word is Word.INCONCLUSIVE
    assert "not confirmed" in verdict.cause


def test_a_red_of_a_server_that_is_not_ours_is_unconfirmed(tmp_path: Path) -> None:
    bench = within(tmp_path, 50, servers=FakeServers(restartable=False))
    verdict = bench.verdicts()[THROUGHPUT]
    assert verdict.word is Word.REGRESSED
    assert "unconfirmed" in verdict.cause
    assert "confirmation" not in bench.roles()


def test_reds_that_share_a_server_are_confirmed_by_one_fresh_start(tmp_path: Path) -> None:
    servers = FakeServers()
    first = within(tmp_path, 50, servers=servers)
    second = within(tmp_path, 60, servers=servers)
    begun = [first.begin(), second.begin()]
    assert servers.starts == 2, "the candidate and its reference"
    results = settle(begun)
    assert [result.verdicts[0].word for result in results] == [Word.REGRESSED] * 2
    assert all(result.verdicts[0].confirmation is not None for result in results)
    assert servers.starts == 3
    assert first.roles()[-2:] == second.roles()[-2:] == ["confirmation", "confirmation"]


def test_a_fresh_start_that_breaks_fails_its_own_case_alone(tmp_path: Path) -> None:
    def dies(task: Task, server: Server) -> Mapping[str, float]:
        if task.role == "confirmation":
            raise DeathError("the engine's process ended", cause="crash")
        return script_of(steady(50))(task, server)

    servers = FakeServers()
    first = Bench(tmp_path, case(tmp_path, gate(THROUGHPUT, 0.2, reference="old")), dies, servers=servers)
    second = within(tmp_path, 50, servers=servers)
    broken, confirmed = settle([first.begin(), second.begin()])
    assert "the engine's process ended" in broken.failure
    assert "seen before a fresh start: output_throughput -49" in broken.failure
    assert broken.verdicts == ()
    assert len(first.discarded) == 1
    assert confirmed.verdicts[0].word is Word.REGRESSED
    assert confirmed.verdicts[0].confirmation is not None


def test_a_disk_that_is_full_in_the_confirmation_takes_nothing_of_what_was_seen(tmp_path: Path) -> None:
    def full(task: Task, server: Server) -> Mapping[str, float]:
        if task.role == "confirmation":
            raise OSError(28, "No space left on device")
        return script_of(steady(50))(task, server)

    bench = Bench(tmp_path, case(tmp_path, gate(THROUGHPUT, 0.2, reference="old")), full)
    (verdict,) = bench.judge().verdicts
    assert verdict.word is Word.REGRESSED
    assert "unconfirmed: the run after a fresh start broke: [Errno 28] No space left" in verdict.cause
    assert verdict.change == pytest.approx(-0.5, abs=0.05)


def test_a_red_that_waits_says_so_when_the_session_ends(tmp_path: Path) -> None:
    result = within(tmp_path, 50).begin().result()
    assert result.verdicts[0].word is Word.REGRESSED
    assert "the session ended before a fresh start" in result.verdicts[0].cause


def test_an_invalid_confirmation_confirms_nothing(tmp_path: Path) -> None:
    def script(task: Task, server: Server) -> Mapping[str, float]:
        values = {THROUGHPUT: (50 if server.arm.name == "new" else 100) * WOBBLE[task.order % 5]}
        return values | ({"invalid": 1} if task.role == "confirmation" else {})

    bench = Bench(tmp_path, case(tmp_path, gate(THROUGHPUT, 0.2, reference="old")), script)
    verdict = bench.verdicts()[THROUGHPUT]
    assert "unconfirmed" in verdict.cause
    assert "client_lag" in verdict.cause
    assert verdict.confirmation is None


def test_invalid_runs_are_made_again_twice_and_then_the_metric_is_invalid(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path,
        case(tmp_path, gate(THROUGHPUT, 0.2, reference="old")),
        lambda task, _: {THROUGHPUT: 100.0, **({} if task.role == "warmup" else {"invalid": 1})},
    )
    verdict = bench.verdicts()[THROUGHPUT]
    assert verdict.word is Word.INVALID
    assert "client_lag" in verdict.cause
    assert len(bench.roles()) == 2 * len(INTERLEAVING) + 2


def test_one_invalid_run_is_replaced_and_forgotten(tmp_path: Path) -> None:
    def script(task: Task, server: Server) -> Mapping[str, float]:
        return {THROUGHPUT: 100 * WOBBLE[task.order % 5]} | ({"invalid": 1} if task.order == 3 else {})

    bench = Bench(tmp_path, case(tmp_path, gate(THROUGHPUT, 0.2, reference="old")), script)
    assert bench.verdicts()[THROUGHPUT].word is Word.PASSED
    assert len(bench.roles()) == 2 * len(INTERLEAVING) + 1


def test_what_differs_from_the_reference_arm_is_said(tmp_path: Path) -> None:
    bench = within(tmp_path, 50)
    assert bench.judge().changed == {"engine": ("old", "new")}


def stored(tmp_path: Path, new: float, *, cv: float = 0.02, **fields: Any) -> Bench:
    gates = (gate(THROUGHPUT, 0.2, cv=cv),)
    return Bench(tmp_path, case(tmp_path, *gates), script_of(steady(new)), recorded=gates, **fields)


def test_a_baseline_is_recorded_and_judged_by_until_it_is_decided(tmp_path: Path) -> None:
    assert stored(tmp_path, 100).verdicts()[THROUGHPUT].word is Word.NO_BASELINE
    recording = stored(tmp_path, 100, accept="missing").verdicts()[THROUGHPUT]
    assert recording.word is Word.SKIPPED
    assert "baseline recorded" in recording.cause
    good = stored(tmp_path, 100)
    assert good.verdicts()[THROUGHPUT].word is Word.PASSED
    assert good.roles() == ["candidate"]
    bad = stored(tmp_path, 50)
    assert bad.verdicts()[THROUGHPUT].word is Word.REGRESSED
    assert bad.roles() == ["candidate", "confirmation"]
    undecided = stored(tmp_path, 90, cv=0.06)
    assert undecided.verdicts()[THROUGHPUT].word is Word.INCONCLUSIVE
    assert undecided.roles() == ["candidate"] * 5


def test_a_budget_that_is_used_up_ends_the_looks_and_leaves_reds_unconfirmed(tmp_path: Path) -> None:
    stored(tmp_path, 100, accept="missing").judge()
    undecided = stored(tmp_path, 90, cv=0.06, time_left_s=lambda: -1.0)
    verdict = undecided.verdicts()[THROUGHPUT]
    assert verdict.word is Word.INCONCLUSIVE
    assert "not run again: the suite's budget leaves no time" in verdict.cause
    assert undecided.roles() == ["candidate"], "what was begun is finished"
    red = stored(tmp_path, 50, time_left_s=lambda: -1.0)
    verdict = red.verdicts()[THROUGHPUT]
    assert verdict.word is Word.REGRESSED
    assert "unconfirmed: the suite's budget leaves no time" in verdict.cause
    assert red.roles() == ["candidate"]


def failing(tmp_path: Path, failed: int, requests: int, **fields: Any) -> Bench:
    """Every run of the candidate has so many failed requests."""
    made = case(tmp_path, gate(THROUGHPUT, 0.2, reference="old"))
    suite = replace(made.suite, failures=FailureGate(allowed=0.001, limit=0.01))

    def script(task: Task, server: Server) -> Mapping[str, float]:
        bad = failed if server.arm.name == "new" else 0
        return {**script_of(steady())(task, server), "requests": requests, "failed": bad}

    return Bench(tmp_path, replace(made, suite=suite), script, **fields)


def test_failed_requests_are_counted_against_what_the_suite_lets_fail(tmp_path: Path) -> None:
    clean = failing(tmp_path, 0, 100).judge()
    assert clean.failures is not None
    assert clean.failures.word is Word.PASSED
    assert clean.failures.runs == 4
    few = failing(tmp_path, 1, 1000).judge()
    assert few.failures is not None
    assert few.failures.word is Word.PASSED
    assert few.failure == ""
    assert failing(tmp_path, 0, 10).judge().failures.word is Word.INCONCLUSIVE  # type: ignore[union-attr]


def test_too_many_failed_requests_fail_the_case_with_their_reasons(tmp_path: Path) -> None:
    bench = failing(tmp_path, 5, 100)
    result = bench.judge()
    assert "new: 20 of 400 requests failed, 0.1 % may" in result.failure
    assert "20 x status 500" in result.failure
    assert result.verdicts == ()
    assert len(bench.discarded) == 1


def test_missing_leaves_a_baseline_alone_and_all_replaces_it(tmp_path: Path) -> None:
    stored(tmp_path, 100, accept="missing").judge()
    (path,) = (tmp_path / "baselines").rglob("*.yaml")
    before = path.read_text()
    assert stored(tmp_path, 100, accept="missing").verdicts()[THROUGHPUT].word is Word.PASSED
    assert path.read_text() == before
    stored(tmp_path, 50, accept="all").judge()
    assert path.read_text() != before


def test_each_file_is_recorded_by_itself(tmp_path: Path) -> None:
    def script(task: Task, server: Server) -> Mapping[str, float]:
        return {THROUGHPUT: 100.0, "acceptance_length": 3.0}

    count, speed = gate("acceptance_length", 0.03, cv=0), gate(THROUGHPUT, 0.2, cv=0.02)
    Bench(tmp_path, case(tmp_path, count), script, accept="missing", recorded=(count,)).judge()
    both = Bench(tmp_path, case(tmp_path, count, speed), script, accept="missing", recorded=(count, speed))
    words = {metric: verdict.word for metric, verdict in both.verdicts().items()}
    assert words == {"acceptance_length": Word.PASSED, THROUGHPUT: Word.SKIPPED}
    assert len(list((tmp_path / "baselines").rglob("*.yaml"))) == 2


def test_a_part_of_the_gates_records_the_whole_file(tmp_path: Path) -> None:
    def script(task: Task, server: Server) -> Mapping[str, float]:
        return {THROUGHPUT: 100.0, "mean_e2el_ms": 10.0}

    gates = gate(THROUGHPUT), gate("mean_e2el_ms")
    Bench(tmp_path, case(tmp_path, gates[0]), script, accept="all", recorded=gates).judge()
    (path,) = (tmp_path / "baselines").rglob("*.yaml")
    assert "mean_e2el_ms" in path.read_text()


def test_an_invalid_run_never_becomes_a_baseline(tmp_path: Path) -> None:
    gates = (gate(THROUGHPUT),)
    bench = Bench(
        tmp_path,
        case(tmp_path, *gates),
        lambda task, _: {THROUGHPUT: 100.0, "invalid": 1},
        accept="all",
        recorded=gates,
    )
    verdict = bench.verdicts()[THROUGHPUT]
    assert verdict.word is Word.INVALID
    assert "client_lag" in verdict.cause
    assert "nothing was recorded" in verdict.cause
    assert not (tmp_path / "baselines").exists()


def test_a_variant_never_becomes_the_baseline_of_another_arm(tmp_path: Path) -> None:
    gates = (gate(THROUGHPUT),)
    bad = case(tmp_path, *gates, arm="slow", variant_of="new")
    bench = Bench(tmp_path, bad, script_of(steady()), accept="all", recorded=gates)
    verdict = bench.verdicts()[THROUGHPUT]
    assert verdict.word is Word.INVALID
    assert "variant of new" in verdict.cause
    assert bench.tasks == []


def test_a_broken_baseline_file_costs_no_run(tmp_path: Path) -> None:
    stored(tmp_path, 100, accept="missing").judge()
    (path,) = (tmp_path / "baselines").rglob("*.yaml")
    path.write_text("kind: [")
    bench = stored(tmp_path, 100)
    verdict = bench.verdicts()[THROUGHPUT]
    assert verdict.word is Word.NO_BASELINE
    assert f"{path.name}:" in verdict.cause
    assert bench.tasks == []


def test_a_broken_baseline_file_can_be_replaced(tmp_path: Path) -> None:
    stored(tmp_path, 100, accept="missing").judge()
    (path,) = (tmp_path / "baselines").rglob("*.yaml")
    path.write_text("kind: [")
    assert stored(tmp_path, 100, accept="all").verdicts()[THROUGHPUT].word is Word.SKIPPED
    assert stored(tmp_path, 100).verdicts()[THROUGHPUT].word is Word.PASSED


def natural(
    tmp_path: Path, new: int | None, old: int, *, output: Literal["exact", "natural"] = "natural", **fields: Any
) -> Bench:
    """Both arms as fast as each other; runs answer ``new`` and ``old`` tokens in all, two more or less by turns."""
    reference = None if "accept" in fields or fields.pop("stored", False) else "old"
    made = case(tmp_path, gate(THROUGHPUT, 0.2, reference=reference, cv=0.02))

    def script(task: Task, server: Server) -> Mapping[str, float]:
        tokens = {"new": new, "old": old}[server.arm.name]
        around = NEVER if tokens is None else tokens + (2 if task.order % 2 else -2)
        return {**script_of(steady())(task, server), "answered": around}

    workload = replace(made.workload, output=output)
    return Bench(tmp_path, replace(made, workload=workload), script, recorded=made.gates, **fields)


def test_natural_answers_of_other_lengths_are_not_compared_with_an_arm(tmp_path: Path) -> None:
    verdict = natural(tmp_path, 1020, 1000).verdicts()[THROUGHPUT]
    assert verdict.word is Word.NO_BASELINE
    assert "1020 output tokens a run, reference 1000, more than 1% apart" in verdict.cause
    assert natural(tmp_path, 1009, 1000).verdicts()[THROUGHPUT].word is Word.PASSED
    assert natural(tmp_path, 1020, 1000, output="exact").verdicts()[THROUGHPUT].word is Word.PASSED


def test_natural_answers_of_other_lengths_are_not_compared_with_a_baseline(tmp_path: Path) -> None:
    natural(tmp_path, 1000, 0, accept="all").judge()
    (path,) = (tmp_path / "baselines").rglob("*.yaml")
    assert 'output_tokens: "999.3"' in path.read_text(), "the mean of three runs"
    verdict = natural(tmp_path, 1020, 0, stored=True).verdicts()[THROUGHPUT]
    assert verdict.word is Word.NO_BASELINE
    assert "the baseline is not comparable: 1018 output tokens a run, reference 999" in verdict.cause
    assert natural(tmp_path, 1004, 0, stored=True).verdicts()[THROUGHPUT].word is Word.PASSED


def test_natural_answers_that_nobody_counted_are_not_compared_with_counted_ones(tmp_path: Path) -> None:
    natural(tmp_path, 1000, 0, accept="all").judge()
    verdict = natural(tmp_path, None, 0, stored=True).verdicts()[THROUGHPUT]
    assert "output_tokens: reference 999.3, here unknown" in verdict.cause


def test_a_loss_since_an_improvement_that_nobody_accepted_is_red_against_the_recent_sessions(tmp_path: Path) -> None:
    accepted = FakeClock(today=nights.NOW - timedelta(days=30))
    stored(tmp_path, 100, accept="missing", clock=accepted).judge()
    tonight: dict[str, Any] = {"cv": 0.02, "clock": FakeClock(today=nights.NOW)}
    assert stored(tmp_path, 100, **tonight).verdicts()[THROUGHPUT].word is Word.PASSED
    for night in range(8, 0, -1):
        save(tmp_path, night, {THROUGHPUT: 170 * WOBBLE[night % 5]}, facts={**FACTS, "engine": "new"})
    fallen = stored(tmp_path, 100, **tonight).judge().verdicts[0]
    assert (fallen.word, fallen.against) == (Word.REGRESSED, RECENT)
    assert fallen.reference_sessions == 8
    assert fallen.confirmation == pytest.approx(-0.41, abs=0.02)
    as_fast = stored(tmp_path, 170, **tonight).judge().verdicts[0]
    assert (as_fast.word, as_fast.against) == (Word.IMPROVED, BASELINE)


def with_noise(tmp_path: Path, cv: float) -> tuple[Gate, ...]:
    """A baseline of twelve sessions that vary by ``cv``, calibrated; a gate that takes its margin from it."""
    gates = (gate(THROUGHPUT, auto=True),)
    made = case(tmp_path, *gates)
    runs = [[100 * math.exp(cv * step)] * 2 for step in (-1.4, -1, -0.6, -0.3, -0.1, 0, 0.1, 0.3, 0.6, 1, 1.4, 0)]
    stored = baseline.Baseline(
        case=made.id, workload=FACTS["workload"], environment={"engine": "new"},
        refuse_unless={key: value for key, value in FACTS.items() if key != "workload"},
        accepted=baseline.Accepted(on=date(2026, 11, 1), commit="abc", why="a test"),
        sessions=tuple(f"night-{i}" for i in range(len(runs))), metrics={THROUGHPUT: tuple(map(tuple, runs))},
    )  # fmt: skip
    stored = replace(stored, calibration=judge.calibrate(stored.measurement(), [gates[0].metric]))
    baseline.Store(tmp_path / "baselines").write_case("box", "suite", stored, any_hardware=True)
    return gates


def test_auto_takes_the_margin_that_the_calibration_gives(tmp_path: Path) -> None:
    gates = with_noise(tmp_path, 0.003)
    for speed, word in ((100, Word.PASSED), (97, Word.REGRESSED)):
        bench = Bench(tmp_path, case(tmp_path, *gates), lambda task, server, speed=speed: {THROUGHPUT: speed})  # type: ignore[misc]
        (verdict,) = bench.judge().verdicts
        assert (verdict.word, verdict.margin, verdict.calibrated) == (word, 0.01, True)
        assert bench.tasks[-1].gates[0].margin == 0.01, "the client is held to it too"


def test_what_no_margin_can_be_promised_of_is_shown_and_not_gated(tmp_path: Path) -> None:
    gates = with_noise(tmp_path, 0.2)
    bench = Bench(tmp_path, case(tmp_path, *gates), lambda task, server: {THROUGHPUT: 20})
    (verdict,) = bench.judge().verdicts
    assert verdict.word is Word.INCONCLUSIVE
    assert "not gated: 3 runs see no loss below" in verdict.cause
    assert bench.roles() == ["candidate"], "more runs would not help"


def test_a_gate_without_a_calibration_says_so(tmp_path: Path) -> None:
    stored(tmp_path, 100, accept="missing").judge()
    assert stored(tmp_path, 100).judge().verdicts[0].calibrated is False
    assert within(tmp_path, 100).judge().verdicts[0].calibrated is None


def test_runs_that_a_comparison_of_arms_made_are_all_judged_against_the_baseline(tmp_path: Path) -> None:
    stored(tmp_path, 100, accept="missing").judge()
    gates = gate(THROUGHPUT, 0.2, cv=0.02), gate("mean_e2el_ms", 0.2, reference="old")

    def script(task: Task, server: Server) -> Mapping[str, float]:
        return {**script_of(steady())(task, server), "mean_e2el_ms": 10 * WOBBLE[task.order % 5]}

    bench = Bench(tmp_path, case(tmp_path, *gates), script)
    verdicts = bench.judge().verdicts
    assert [(verdict.word, verdict.runs) for verdict in verdicts] == [(Word.PASSED, 4)] * 2
    assert bench.roles().count("candidate") == 4
