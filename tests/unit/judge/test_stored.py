"""Against a stored baseline: the words, the evidence beside them, and what may not move them."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pytest_llmperf.judge import LOOKS, SINGLE, judge, provisional, refuse
from pytest_llmperf.model.measurement import Measurement
from pytest_llmperf.model.verdict import Verdict, Word
from pytest_llmperf.stats.variance import sessions
from tests.unit.judge.worlds import ACCEPTANCE, E2EL, THROUGHPUT, TPOT, gate, measured, runs_around, scaled

QUIET = [[-0.004], [0.003], [0.0], [0.006], [-0.005], [0.002], [-0.001], [0.004], [-0.003], [-0.002]]
"""Log deviations of ten sessions with a CV of 0.4 %."""
MEDIUM, NOISY = ([[factor * y for y in group] for group in QUIET] for factor in (4, 9))

THROUGHPUTS = st.lists(st.lists(st.floats(50, 200), min_size=1, max_size=3), min_size=1, max_size=14)


def one(candidate: list[list[float]], baseline: list[list[float]], metric: str = TPOT, **how: float | None) -> Verdict:
    gates = [gate(metric, margin=how.get("margin"), cv=how.get("cv"))]
    (verdict,) = judge(measured(**{metric: baseline}), measured("c", **{metric: candidate}), gates)
    return verdict


@pytest.mark.parametrize("metric", [TPOT, THROUGHPUT])
@pytest.mark.parametrize(
    ("loss", "word"),
    [(0.15, Word.REGRESSED), (0.06, Word.REGRESSED), (0.0, Word.PASSED), (-0.06, Word.IMPROVED)],
)
def test_a_change_gets_its_word(metric: str, loss: float, word: Word) -> None:
    worse = 1 + loss if metric == TPOT else 1 / (1 + loss)
    verdict = one([[100 * worse]], runs_around(100, QUIET), metric)
    assert verdict.word is word
    assert verdict.change == pytest.approx(worse - 1, abs=1e-3)
    assert verdict.interval is not None
    assert verdict.interval[0] < worse - 1 < verdict.interval[1]


def test_the_evidence_follows_the_formulae() -> None:
    baseline, candidate = runs_around(100, QUIET), [[103.0, 104.0, 103.5]]
    verdict = one(candidate, baseline)

    means = [math.log(group[0]) for group in baseline]
    centre = sum(means) / 10
    own = sum((y - centre) ** 2 for y in means) / 9
    s = math.sqrt((4 * 0.015**2 + 9 * own) / 13)
    se = s * math.sqrt(0.5 / 1 + 0.5 / 3 + 1 / 10)
    d = sum(map(math.log, candidate[0])) / 3 - centre
    half = stats.t.isf(0.05, 13) * se
    assert verdict.change == pytest.approx(math.expm1(d))
    assert verdict.interval == pytest.approx((math.expm1(d - half), math.expm1(d + half)))
    assert verdict.p_fail == pytest.approx(stats.t.sf(d / se, 13))
    assert verdict.p_pass == pytest.approx(stats.t.cdf((d - math.log(1.05)) / se, 13))
    assert verdict.smallest_visible == pytest.approx(math.expm1((stats.t.isf(0.05, 13) + stats.t.isf(0.2, 13)) * se))
    assert (verdict.runs, verdict.reference_runs, verdict.reference_sessions) == (3, 10, 10)
    assert verdict.reference == pytest.approx(sum(g[0] for g in baseline) / 10)
    assert verdict.measured == 103.5
    assert verdict.against == "baseline"


def test_the_smallest_visible_loss_is_a_loss_in_the_metrics_own_direction() -> None:
    up, down = (one([[100.0]], runs_around(100, QUIET), m, cv=0.1) for m in (TPOT, THROUGHPUT))
    assert up.smallest_visible is not None
    assert down.smallest_visible is not None
    assert (1 + up.smallest_visible) * (1 - down.smallest_visible) == pytest.approx(1)


def test_repeats_in_one_session_do_not_count_as_sessions() -> None:
    baseline = runs_around(100, QUIET)
    together = one([[103.0, 103.0, 103.0]], baseline).smallest_visible
    apart = one([[103.0], [103.0], [103.0]], baseline).smallest_visible
    assert together is not None
    assert apart is not None
    assert apart < 0.75 * together


@pytest.mark.parametrize(
    ("groups", "rho"),
    [
        ([[y - 0.03, y + 0.03] for (y,) in QUIET], 0.3),
        ([[5 * y, 5 * y + 1e-4] for (y,) in QUIET], 0.95),
        ([[y - 0.03, y, y + 0.03] for (y,) in QUIET[:9]], 0.5),
        ([*([[y] for (y,) in QUIET]), [-0.03, 0.03]], 0.5),
    ],
    ids=["no lower than .3", "no higher than .95", "nine sessions cannot tell", "one degree of freedom within cannot"],
)
def test_the_session_share_is_estimated_within_bounds_by_a_baseline_that_can_tell(
    groups: list[list[float]], rho: float
) -> None:
    verdict = one([[100.0] * 5], runs_around(100, groups))
    layout = sessions(groups)
    s2 = (4 * 0.015**2 + (layout.count - 1) * layout.variance) / (4 + layout.count - 1)
    se = math.sqrt(s2 * (rho + (1 - rho) / 5 + (rho + (1 - rho) * layout.runs_inverse) / layout.count))
    df = 4 + layout.count - 1
    assert verdict.smallest_visible == pytest.approx(
        math.expm1((stats.t.isf(0.05, df) + stats.t.isf(0.2, df)) * se), rel=1e-6
    )


def test_a_loss_below_the_floor_is_not_red_however_clear() -> None:
    assert one([[102.4]], runs_around(100, QUIET), cv=0.001).word is Word.PASSED
    assert one([[102.6]], runs_around(100, QUIET), cv=0.001).word is Word.REGRESSED


def test_a_baseline_of_one_run_works_with_the_class_prior() -> None:
    assert one([[100.5]], [[100.0]]).word is Word.INCONCLUSIVE
    assert one([[120.0]], [[100.0]]).word is Word.REGRESSED


def test_no_baseline_is_believed_to_be_free_of_noise() -> None:
    verdict = one([[100.0]], [[100.0]] * 200, cv=1e-9)
    assert verdict.smallest_visible is not None
    assert verdict.smallest_visible > 0.006


@pytest.mark.parametrize(
    ("candidate", "baseline", "cause"),
    [
        (100.0, NOISY, "underpowered: smallest visible change 8.24 % > margin 5 %"),
        (102.5, MEDIUM, "borderline: a change of +2.5 % neither shows a loss nor excludes one of 5 %"),
        (100.0, QUIET[:1], "baseline too small (1 of 10 sessions): smallest visible change 6.74 % > margin 5 %"),
    ],
)
def test_inconclusive_says_why(candidate: float, baseline: list[list[float]], cause: str) -> None:
    verdict = one([[candidate]], runs_around(100, baseline), margin=0.05)
    assert verdict.word is Word.INCONCLUSIVE
    assert verdict.cause.startswith(cause)


def test_what_more_sessions_would_not_mend_is_not_blamed_on_the_baseline() -> None:
    assert one([[100.0]], runs_around(100, NOISY[:2]), cv=0.05).cause.startswith("underpowered: smallest visible")


def test_a_metric_that_the_baseline_lacks_is_no_baseline() -> None:
    (verdict,) = judge(measured(mean_e2el_ms=[[1.0]]), measured("c", mean_tpot_ms=[[1.0]]), [gate(TPOT)])
    assert verdict.word is Word.NO_BASELINE
    assert (verdict.cause, verdict.measured, verdict.reference) == (f"the baseline has no {TPOT}", 1.0, None)


@pytest.mark.parametrize("value", [0.0, -1.0, math.nan, math.inf])
def test_a_value_that_cannot_be_is_invalid(value: float) -> None:
    verdict = one([[100.0, value]], runs_around(100, QUIET))
    assert verdict.word is Word.INVALID
    assert "must be positive and finite (run 1, session c0)" in verdict.cause
    assert verdict.p_fail is None


def test_a_metric_that_some_runs_lack_is_invalid() -> None:
    baseline = measured(mean_tpot_ms=[[1.0]], mean_e2el_ms=[[1.0]])
    candidate = measured("c", mean_tpot_ms=[[1.0]], mean_e2el_ms=[[1.0, 1.0, 1.0]])
    tpot, e2el = judge(baseline, candidate, [gate(TPOT), gate(E2EL)])
    assert (tpot.word, tpot.cause) == (Word.INVALID, "no value in 2 of 3 runs")
    assert e2el.word is not Word.INVALID
    (missing,) = judge(baseline, Measurement({}), [gate(TPOT)])
    assert (missing.word, missing.cause) == (Word.INVALID, "no run has a value")


def test_a_baseline_of_several_files_need_not_have_the_same_runs() -> None:
    tpot, e2el = measured("x", mean_tpot_ms=[[1.0]]), measured("y", mean_e2el_ms=[[1.0], [1.0]])
    baseline = Measurement({**tpot.samples, **e2el.samples})
    candidate = measured("c", mean_tpot_ms=[[1.0]], mean_e2el_ms=[[1.0]])
    assert Word.INVALID not in {v.word for v in judge(baseline, candidate, [gate(TPOT), gate(E2EL)])}


def test_the_family_makes_red_harder_and_leaves_passed_alone() -> None:
    baseline, candidate = measured(mean_tpot_ms=runs_around(100, MEDIUM)), measured("c", mean_tpot_ms=[[105.0]])
    (alone,) = judge(baseline, candidate, [gate(TPOT)])
    (of_forty,) = judge(baseline, candidate, [gate(TPOT)], family=40)
    assert alone.word is Word.REGRESSED
    assert of_forty.word is Word.INCONCLUSIVE
    assert of_forty.p_fail == pytest.approx(40 * (alone.p_fail or 0))
    assert of_forty.p_pass == alone.p_pass
    with pytest.raises(ValueError, match="family"):
        judge(baseline, candidate, [gate(TPOT)], family=0)


def test_p_values_are_adjusted_over_the_gates_of_the_case_even_those_without_a_value() -> None:
    baseline = measured(mean_tpot_ms=runs_around(100, QUIET), mean_e2el_ms=runs_around(100, QUIET))
    candidate = measured("c", mean_tpot_ms=[[104.0]], mean_e2el_ms=[[100.0]])
    (alone,) = judge(baseline, measured("c", mean_tpot_ms=[[104.0]]), [gate(TPOT)])
    both = judge(baseline, candidate, [gate(TPOT), gate(E2EL)])
    with_missing = judge(baseline, measured("c", mean_tpot_ms=[[104.0]]), [gate(TPOT), gate(E2EL)])
    assert both[0].p_fail == with_missing[0].p_fail == pytest.approx(2 * (alone.p_fail or 0))


def test_an_earlier_look_spends_less() -> None:
    baseline, candidate = measured(mean_tpot_ms=runs_around(100, MEDIUM)), measured("c", mean_tpot_ms=[[103.5]])
    words = [judge(baseline, candidate, [gate(TPOT)], look=look)[0].word for look in (LOOKS[0], SINGLE)]
    assert words == [Word.INCONCLUSIVE, Word.REGRESSED]


def test_every_look_may_pass_at_five_percent() -> None:
    baseline, candidate = measured(mean_tpot_ms=runs_around(100, MEDIUM)), measured("c", mean_tpot_ms=[[102.0]])
    (verdict,) = judge(baseline, candidate, [gate(TPOT)], look=LOOKS[0])
    assert verdict.p_pass == pytest.approx(0.0416, abs=1e-4)
    assert verdict.word is Word.PASSED


def test_absolute_metrics_are_judged_in_their_unit() -> None:
    baseline = [[1.70 + 0.001 * i] for i in range(10)]
    verdict = one([[1.60]], baseline, ACCEPTANCE, cv=0.005)
    assert verdict.word is Word.REGRESSED
    assert verdict.change == pytest.approx(-0.1045)
    assert one([[1.703]], baseline, ACCEPTANCE, cv=0.005).word is Word.PASSED
    assert "0.03 tok/step" in one([[1.69]], baseline, ACCEPTANCE, cv=0.05).cause


def test_a_refused_baseline_gives_its_reason_for_every_gate() -> None:
    verdicts = refuse([gate(TPOT), gate(THROUGHPUT)], "weights: baseline real, here dummy")
    assert [(v.metric, v.word) for v in verdicts] == [(TPOT, Word.NO_BASELINE), (THROUGHPUT, Word.NO_BASELINE)]
    assert {v.cause for v in verdicts} == {"weights: baseline real, here dummy"}


@given(baseline=THROUGHPUTS, candidate=THROUGHPUTS, factor=st.sampled_from([1e-3, 0.37, 8.0, 1e6]))
def test_units_do_not_matter(baseline: list[list[float]], candidate: list[list[float]], factor: float) -> None:
    there, here = measured(output_throughput=baseline), measured("c", output_throughput=candidate)
    (before,) = judge(there, here, [gate(THROUGHPUT)])
    (after,) = judge(scaled(there, factor), scaled(here, factor), [gate(THROUGHPUT)])
    assert after.p_fail == pytest.approx(before.p_fail, rel=1e-6, abs=1e-12)
    assert after.p_pass == pytest.approx(before.p_pass, rel=1e-6, abs=1e-12)
    assert after.change == pytest.approx(before.change, rel=1e-9, abs=1e-9)


@given(baseline=THROUGHPUTS, candidate=THROUGHPUTS, order=st.permutations(range(3)))
def test_the_order_of_gates_does_not_matter(
    baseline: list[list[float]], candidate: list[list[float]], order: list[int]
) -> None:
    names = [THROUGHPUT, TPOT, E2EL]
    there = measured(**dict.fromkeys(names, baseline))
    here = measured("c", **dict.fromkeys(names, candidate))
    gates = [gate(name, cv=0.01 * (i + 1)) for i, name in enumerate(names)]
    straight = judge(there, here, gates, family=3)
    assert judge(there, here, [gates[i] for i in order], family=3) == [straight[i] for i in order]


@given(baseline=THROUGHPUTS, candidate=THROUGHPUTS)
def test_the_same_input_gives_the_same_bits_whatever_the_order_of_storage(
    baseline: list[list[float]], candidate: list[list[float]]
) -> None:
    there, here = measured(output_throughput=baseline), measured("c", output_throughput=candidate)
    again = Measurement({name: tuple(reversed(sample)) for name, sample in there.samples.items()})
    first = judge(there, here, [gate(THROUGHPUT)])
    assert repr(first) == repr(judge(there, here, [gate(THROUGHPUT)])) == repr(judge(again, here, [gate(THROUGHPUT)]))


@given(baseline=THROUGHPUTS, candidate=THROUGHPUTS, worse=st.floats(0.5, 0.999))
def test_a_worse_candidate_never_looks_better(
    baseline: list[list[float]], candidate: list[list[float]], worse: float
) -> None:
    there, here = measured(output_throughput=baseline), measured("c", output_throughput=candidate)
    (before,) = judge(there, here, [gate(THROUGHPUT)])
    (after,) = judge(there, scaled(here, worse), [gate(THROUGHPUT)])
    rank = [Word.IMPROVED, Word.PASSED, Word.INCONCLUSIVE, Word.REGRESSED]
    assert rank.index(after.word) >= rank.index(before.word)


def test_an_interval_that_excludes_nothing_is_still_an_interval() -> None:
    verdict = one([[1e300]], [[1e-300], [1e300]])
    assert verdict.interval is not None
    assert verdict.interval[1] == math.inf
    assert verdict.word is Word.INCONCLUSIVE


@pytest.mark.parametrize(
    ("sessions_stored", "words"),
    [(1, "provisional, 1 of 10 sessions, smallest loss visible 6.74 %"), (10, "")],
)
def test_a_small_baseline_is_called_provisional(sessions_stored: int, words: str) -> None:
    verdict = one([[100.0]], runs_around(100, QUIET[:sessions_stored]), margin=0.05)
    assert provisional(verdict, gate(TPOT)) == words


def test_only_a_stored_reference_can_be_provisional() -> None:
    exact = one([[2.0]], [[2.0]], ACCEPTANCE, cv=0)
    (none,) = refuse([gate(TPOT)], "no file")
    assert provisional(exact, gate(ACCEPTANCE, cv=0)) == provisional(none, gate(TPOT)) == ""
