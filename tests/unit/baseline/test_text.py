"""A baseline as text: canonical, read back as it was, and every mistake named with its line."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_llmperf import judge
from pytest_llmperf.baseline import Accepted, Baseline, noise, parse, reader, render
from pytest_llmperf.baseline.document import LARGEST, MAX_BYTES, SMALLEST_RATIO
from pytest_llmperf.baseline.reader import load
from pytest_llmperf.checks.comparability import REFUSE
from pytest_llmperf.errors import BaselineError
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.calibration import MARGINS, Calibration, Noise
from pytest_llmperf.model.measurement import Measurement, Observation
from tests.unit.baseline.examples import (
    CALIBRATED,
    CALIBRATION,
    EXAMPLE,
    GOLDEN,
    GOLDEN_CALIBRATED,
    GOLDEN_NAME,
    with_metrics,
)

TEXT = st.text(st.characters(exclude_categories=["Cs"]), min_size=1).filter(str.strip)
RATIO = st.floats(SMALLEST_RATIO, LARGEST)
ABSOLUTE = st.floats(-LARGEST, LARGEST)


SIZE = st.just(0.0) | st.floats(1e-9, noise.LARGEST)
PART = st.floats(0, 1)


@st.composite
def noises(draw: st.DrawFn, metric: str, replays: int) -> Noise:
    cv, limit = sorted((draw(SIZE), draw(SIZE)))
    low, high = sorted((draw(PART), draw(PART)))
    return Noise(
        metric=metric,
        cv=cv,
        cv_limit=limit,
        session_share=draw(st.none() | PART),
        session_share_interval=draw(st.none() | st.just((low, high))),
        autocorrelation=draw(st.none() | st.floats(-1, 1)),
        visible=tuple((runs, draw(SIZE)) for runs in draw(st.sampled_from([(1, 3, 5), (1, 3, 5, 7)]))),
        margin=draw(st.none() | st.sampled_from(MARGINS)),
        false_alarms=draw(st.integers(0, replays)),
    )


@st.composite
def calibrations(draw: st.DrawFn, metrics: list[str]) -> Calibration:
    sessions = draw(st.integers(2, 99))
    red = draw(st.integers(0, sessions))
    return Calibration(
        sessions=sessions,
        runs=sessions + draw(st.integers(0, 99)),
        noise=tuple(draw(noises(metric, sessions)) for metric in sorted(metrics)),
        replays=sessions,
        red_replays=red,
        on=draw(st.none() | st.dates()),
        commit=draw(TEXT),
    )


@st.composite
def baselines(draw: st.DrawFn) -> Baseline:
    shape = draw(st.lists(st.integers(1, 3), min_size=1, max_size=4))
    names = draw(st.lists(st.sampled_from(sorted(METRICS)), min_size=1, max_size=4, unique=True))
    return Baseline(
        case=draw(TEXT),
        workload="sha256:" + draw(st.text("0123456789abcdef")),
        refuse_unless={key: draw(TEXT) for key in REFUSE if key != "workload"},
        machine=draw(st.dictionaries(TEXT, TEXT, max_size=4)),
        environment=draw(st.dictionaries(TEXT, TEXT, max_size=4)),
        accepted=Accepted(on=draw(st.dates()), commit=draw(TEXT), why=draw(TEXT)),
        sessions=tuple(draw(st.lists(TEXT, min_size=len(shape), max_size=len(shape), unique=True))),
        metrics={
            name: tuple(
                tuple(draw(RATIO if METRICS[name].scale == "ratio" else ABSOLUTE) for _ in range(size))
                for size in shape
            )
            for name in names
        },
        calibration=draw(
            st.none() | calibrations(draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True)))
        ),
    )


@given(baselines())
def test_reading_gives_back_what_was_written(baseline: Baseline) -> None:
    text = render(baseline, "x.yaml")
    assert parse(text, "x.yaml") == baseline
    assert render(parse(text, "x.yaml"), "x.yaml") == text


@given(baselines())
def test_any_yaml_reader_sees_the_same_numbers(baseline: Baseline) -> None:
    plain = yaml.safe_load(render(baseline, "x.yaml"))
    assert plain["metrics"] == {name: [list(g) for g in groups] for name, groups in baseline.metrics.items()}
    assert plain["sessions"] == list(baseline.sessions)


def test_the_text_is_the_golden_one() -> None:
    assert render(EXAMPLE, GOLDEN_NAME) == GOLDEN.read_text()


def test_a_calibration_is_the_golden_text() -> None:
    assert render(CALIBRATED, GOLDEN_NAME) == GOLDEN_CALIBRATED.read_text()
    assert parse(GOLDEN_CALIBRATED.read_text(), "f") == CALIBRATED


def test_a_calibration_adds_lines_and_moves_none() -> None:
    before, after = (render(each, "x").splitlines() for each in (EXAMPLE, CALIBRATED))
    assert [line for line in after if line in before] == before
    assert len(after) - len(before) == 2 + len(CALIBRATION.noise)


WRONG_NOISE = [
    ("calibration:", "calibrations:", "f:14: calibrations: unknown key; did you mean 'calibration'?"),
    ("made: ", "meds: ", "f:15: calibration: made missing; write it with"),
    ("sessions: 12, ", "", "f:15: calibration.made: sessions missing; write it with `llmperf calibrate --store`"),
    ("runs: 24", "runs: 11", "f:15: calibration.made.sessions: a calibration has two or more, each with a run"),
    ("red: 1}", "red: 13}", "f:15: calibration.made.red: 13 of 12 replays cannot be red"),
    ("runs: 24", "runs: many", "f:15: calibration.made.runs: 'many' must be a whole number, 0 or more"),
    ("on: 2026-11-30, commit: 77c", "on: today, commit: 77c", "f:15: calibration.made.on: 'today' is no date"),
    ("  mean_e2el_ms:           {cv", "  mean_e2e_ms:           {cv", "f:17: calibration.mean_e2e_ms: unknown key; "),
    ("  mean_e2el_ms:           {cv", "  mean_tpot_ms:           {cv",
     "f:17: calibration.mean_tpot_ms: the file has no such metric; remove the line"),
    ("cv: 0.33 %", "cv: -0.33 %", "f:17: calibration.mean_e2el_ms.cv: '-0.33 %' must be a percentage such as 0.4 %"),
    ("cv: 0.33 %", "cv: 0.0033", "f:17: calibration.mean_e2el_ms.cv: '0.0033' must be a percentage such as 0.4 %"),
    ("cv: 0.33 %", "cv: NaN %", "f:17: calibration.mean_e2el_ms.cv: 'NaN %' must be a percentage"),
    ("cv: 0.33 %", "cv: 0.6 %", "f:17: calibration.mean_e2el_ms.limit: is the upper limit of cv and cannot be below"),
    ("cv: 0.33 %, ", "", "f:17: calibration.mean_e2el_ms: cv missing; write it with `llmperf calibrate --store`"),
    ("rho: 0.1,", "rho: 1.1,", "f:17: calibration.mean_e2el_ms.rho: '1.1' must be a number from 0 to 1"),
    ("[0, 0.6]", "[0.6, 0]", "f:17: calibration.mean_e2el_ms.rho_90: must have its low end first"),
    ("[0, 0.6]", "[0]", "f:17: calibration.mean_e2el_ms.rho_90: must be the two ends of an interval"),
    ("lag_1: -0.2", "lag_1: -2", "f:17: calibration.mean_e2el_ms.lag_1: '-2' must be a number from -1 to 1"),
    ("{1: 1.6 %,", "{0: 1.6 %,", "f:17: calibration.mean_e2el_ms.smallest: '0' must be a whole number, 1 to 1000"),
    ("smallest: {1: 1.6 %, 3: 1.2 %, 5: 1 %}", "smallest: 1 %",
     "f:17: calibration.mean_e2el_ms.smallest: must say the smallest loss by number of runs"),
    ("3: 1.2 %, ", "", "f:17: calibration.mean_e2el_ms.smallest: 3 missing; write it with `llmperf calibrate --store`"),
    ("margin: 2 %", "margin: 2.5 %", "f:17: calibration.mean_e2el_ms.margin: must be one of 1 %, 2 %, 3 %, 5 %, 7.5 %"),
    ("margin: 2 %, red: 1", "margin: 2 %, red: 13", "f:17: calibration.mean_e2el_ms.red: '13' must be a whole number"),
    ("smallest: {1: 0.01,", "smallest: {1: 1 %,",
     "f:16: calibration.acceptance_length.smallest.1: '1 %' must be a number in the metric's unit, such as 0.02"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("right", "wrong", "message"), WRONG_NOISE, ids=[wrong or right for right, wrong, _ in WRONG_NOISE]
)
def test_a_mistake_in_a_calibration_is_named(right: str, wrong: str, message: str) -> None:
    text = GOLDEN_CALIBRATED.read_text()
    assert right in text
    with pytest.raises(BaselineError) as caught:
        parse(text.replace(right, wrong, 1), "f")
    assert message in str(caught.value)


def test_a_calibration_without_a_metric_is_a_mistake() -> None:
    made = next(line for line in GOLDEN_CALIBRATED.read_text().splitlines() if line.startswith("  made:"))
    text = GOLDEN.read_text().replace("sessions: [", f"calibration:\n{made}\nsessions: [", 1)
    assert refusal(text).startswith("x.yaml:15: calibration: has no metric; write it with")


def test_a_file_keeps_four_digits_and_no_correlations() -> None:
    whole = replace(CALIBRATION, correlations=((1.0, None, 0.5),) * 3)
    rough = replace(whole, noise=tuple(replace(each, cv=each.cv + 1e-9) for each in reversed(whole.noise)))
    assert noise.rounded(rough) == CALIBRATION


@settings(max_examples=30)
@given(st.lists(st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=3), min_size=2, max_size=11))
def test_whatever_was_calibrated_can_be_kept(groups: list[list[float]]) -> None:
    runs = [(value, str(session)) for session, group in enumerate(groups) for value in group]
    sample = tuple(Observation(value, session, order) for order, (value, session) in enumerate(runs))
    found = judge.calibrate(Measurement({"mean_e2el_ms": sample}), [METRICS["mean_e2el_ms"]])
    kept = replace(EXAMPLE, calibration=noise.rounded(found))
    assert parse(render(kept, "x"), "x") == kept


def test_a_new_metric_adds_one_line_and_moves_none() -> None:
    more = replace(EXAMPLE, metrics={**EXAMPLE.metrics, "decode_tok_s_per_user": EXAMPLE.metrics["output_throughput"]})
    before, after = (set(render(each, "x").splitlines()) for each in (EXAMPLE, more))
    assert before < after
    assert len(after - before) == 1


def test_the_measurement_has_every_run_with_its_session() -> None:
    sample = EXAMPLE.measurement().of("output_throughput")
    assert [each.value for each in sample] == [753.7, 752.9, 754.8, 754.1, 752.2, 753.0]
    assert [each.session for each in sample[1:4]] == ["2026-11-28/node-07", *["2026-11-29/node-07"] * 2]
    assert [each.order for each in sample] == list(range(6))


WRONG = [
    ("kind: measured", "kind: published", "f:2: kind: 'published' must be 'measured'"),
    ("kind: measured\n", "", "f:2: kind missing; restore from the last commit, or accept a new baseline"),
    ("case: vllm", "cas: vllm", "f:3: cas: unknown key; did you mean 'case'?"),
    ("workload: sha256:", "workload: md5:", "f:4: workload: 'md5:3f9c0d1b77aa' is no digest; it must begin with"),
    ("weights: real", "weight: real", "f:5: refuse_unless.weight: unknown key; did you mean 'weights'?"),
    (", weights: real", "", "f:5: refuse_unless: weights missing; without it anything would count as comparable"),
    ("  driver: 570.86.15", "  driver:", "f:8: environment.driver: must be a text that is not empty"),
    *[
        ("  node: node-07", f"  output_tokens: {written}",
         f"f:12: environment.output_tokens: '{written}' must be a number of tokens, more than 0; restore the file from")
        for written in ("inf", "abc", "-5", "0", "nan")
    ],
    ("  node: node-07", "  engine: x", "f:12: environment.engine: is there twice; keep one of them"),
    ("2026-11-30,", "30/11/2026,", "f:13: accepted.on: '30/11/2026' is no date; write it as 2026-11-30"),
    ("commit: 4e0a037, ", "", "f:13: accepted: commit missing; restore from the last commit, or accept a new baseline"),
    ("2026-11-29/node-07", "2026-11-28/node-07", "f:14: sessions: '2026-11-28/node-07' is there twice; every server"),
    (", 2026-11-30/node-12", "", "f:16: metrics.acceptance_length: 3 sessions, but 'sessions' names 2; one"),
    ("mean_e2el_ms", "mean_e2e_ms", "f:17: metrics.mean_e2e_ms: unknown metric; did you mean 'mean_e2el_ms'?"),
    ("95833", "0", "f:17: metrics.mean_e2el_ms: '0' cannot be a value; a ratio metric must be po"),
    ("95833", "-3.5", "f:17: metrics.mean_e2el_ms: '-3.5' cannot be a value; a ratio metric must be po"),
    ("95833", ".inf", "f:17: metrics.mean_e2el_ms: '.inf' cannot be a value; a ratio metric must be po"),
    ("95833", "fast", "f:17: metrics.mean_e2el_ms: 'fast' cannot be a value; a ratio metric must be po"),
    ("95833", '"95833"', "f:17: metrics.mean_e2el_ms: '95833' cannot be a value; a ratio metric must be po"),
    ("[[1.70125", "[[nan", "f:16: metrics.acceptance_length: 'nan' cannot be a value; it must be finite"),
    ("[[753.7, 752.9]", "[[753.7]", "f:18: metrics.output_throughput: [1, 2, 2] runs by session, but acceptan"),
    ("[[753.7, 752.9]", "[[]", "f:18: metrics.output_throughput: must be a list of sessions, each a list"),
    ("metrics:\n", "metrics: {}\n", "f:16: not YAML"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("right", "wrong", "message"), WRONG, ids=[wrong.strip() or right for right, wrong, _ in WRONG]
)
def test_a_mistake_is_named_with_its_line_and_the_way_out(right: str, wrong: str, message: str) -> None:
    text = GOLDEN.read_text()
    assert right in text
    with pytest.raises(BaselineError) as caught:
        parse(text.replace(right, wrong, 1), "f")
    assert message in str(caught.value)


def test_all_mistakes_are_named_at_once_in_the_order_of_lines() -> None:
    text = (
        GOLDEN.read_text().replace("95833", "0").replace("kind: measured", "kind: guessed").replace("2026-11-30,", "x,")
    )
    with pytest.raises(BaselineError) as caught:
        parse(text, "f")
    assert [line.split(":")[1] for line in str(caught.value).splitlines()] == ["2", "13", "17"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "[]", "metrics: [", "\x00", "- a\n- b", "a: b", "? [x]\n: y"])
def test_what_is_no_baseline_at_all_is_a_baseline_error(text: str) -> None:
    with pytest.raises(BaselineError, match=r"^f:1: "):
        parse(text, "f")


@given(st.text())
def test_no_text_makes_anything_else_than_a_baseline_or_a_baseline_error(text: str) -> None:
    with pytest.raises(BaselineError):
        parse(text, "f")


def test_counts_of_any_hardware_need_not_say_where_the_client_ran() -> None:
    counts = replace(
        with_metrics(acceptance_length=((1.7,),)),
        sessions=("a",),
        refuse_unless={"hardware": "any", "weights": "synthetic", "acceptance": "natural"},
        accepted=Accepted(on=date(2026, 11, 30), commit="unknown", why="first"),
    )
    assert parse(render(counts, "x"), "x") == counts
    with pytest.raises(BaselineError, match="client, client_placement missing"):
        parse(render(counts, "x").replace("hardware: any", "hardware: 1x-gpu"), "x")


def refusal(text: str) -> str:
    with pytest.raises(BaselineError) as caught:
        parse(text, "x.yaml")
    return str(caught.value)


@pytest.mark.parametrize("value", ["1e-300", "1e-7", "1e13", "1e300"])
def test_a_value_that_nobody_can_measure_is_a_mistake(value: str) -> None:
    text = GOLDEN.read_text().replace("753.7", value)
    assert f"'{value}' cannot be measured; a value is 1e-06 to 1e+12" in refusal(text)


def test_nesting_without_end_is_a_mistake() -> None:
    assert refusal("[" * 100_000) == (
        "x.yaml:1: lists or mappings are nested too deeply; restore the file from its last commit"
    )


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    assert refusal(GOLDEN.read_text() + "#" * MAX_BYTES).startswith("x.yaml:1: is larger than 256 KiB")
    (tmp_path / "x.yaml").write_text("#" * (MAX_BYTES + 10))
    with pytest.raises(BaselineError, match="is larger than 256 KiB"):
        load(tmp_path / "x.yaml")


def test_a_small_file_cannot_stand_for_billions_of_values() -> None:
    assert "x.yaml:1: not YAML: a baseline has no aliases" in refusal("metrics: [&a [1, 2], *a, *a]")


def test_many_sessions_are_read_in_time_that_grows_with_their_number(monkeypatch: pytest.MonkeyPatch) -> None:
    class Counted(str):
        """A label that counts how often it is compared."""

        __slots__ = ()
        compared = 0

        def __eq__(self, other: object) -> bool:
            Counted.compared += 1
            return super().__eq__(other)

        __hash__ = str.__hash__

    text = reader._Reader.text
    monkeypatch.setattr(reader._Reader, "text", lambda *args: Counted(text(*args)))
    refusal(f"sessions: [{', '.join(f's{number}' for number in range(2000))}]")
    assert Counted.compared < 20_000
