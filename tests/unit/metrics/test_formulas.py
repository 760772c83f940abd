from __future__ import annotations

import pytest

from pytest_llmperf import metrics
from pytest_llmperf.metrics.definitions import METRICS
from pytest_llmperf.model.records import NEVER, Outcome, Records
from pytest_llmperf.model.run import Acceptance
from pytest_llmperf.model.slo import Slo
from tests.unit.metrics.examples import WINDOW, records, request

TWO = records(
    request([100, 110, 130], sent_ms=50, scheduled_ms=40, each=[1, 1, 1]),
    request([120, 160], sent_ms=20, scheduled_ms=20, each=[1, 1]),
)
SLO = Slo(ttft_s=0.07, tpot_s=0.1)


def test_only_names_of_the_table_and_all_of_them() -> None:
    values = metrics.compute(
        TWO,
        WINDOW,
        Acceptance(steps=10, accepted=7, drafted=20, per_position=(4, 3, *[0] * 6)),
        slo=SLO,
        gpus=8,
        energy_j=10.0,
    )
    assert set(values) == set(METRICS)
    assert all(type(value) is float for value in values.values())


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("request_throughput", 2 / 2.0),
        ("output_throughput", 5 / 2.0),
        ("total_token_throughput", 25 / 2.0),
        ("tok_s_per_user", (3 / 0.080 + 2 / 0.140) / 2),
        ("decode_tok_s_per_user", (1000 / 15 + 1000 / 40) / 2),
        ("output_throughput_per_gpu", 5 / 2.0 / 8),
        ("steady_state_output_throughput", 1 / 0.010),
        ("max_output_tokens_per_s", 5),
        ("request_goodput", 1 / 2.0),
        ("slo_attainment", 1 / 2),
        ("max_concurrent_requests", 2),
        ("mean_concurrency", (81 + 141) / 2000),
        ("median_decode_tpot_ms", (15 + 40) / 2),
        ("mean_token_itl_ms", (10 + 20 + 40) / 3),
        ("mean_ttft_from_schedule_ms", (60 + 100) / 2),
        ("p99_e2el_from_schedule_ms", 90 + 0.99 * 50),
        ("mean_ttft_ms", 75),
        ("p90_ttft_ms", 50 + 0.9 * 50),
        ("median_tpot_ms", (15 + 40) / 2),
        ("mean_itl_ms", (10 + 20 + 40) / 3),
        ("median_itl_ms", 20),
        ("p99_itl_ms", 20 + 0.98 * 20),
        ("mean_e2el_ms", (80 + 140) / 2),
        ("p95_e2el_ms", 80 + 0.95 * 60),
        ("acceptance_length", 1.7),
        ("acceptance_rate", 0.35),
        ("energy_j", 10.0),
        ("tokens_per_joule", 5 / 10.0),
    ],
)
def test_values_by_hand(name: str, value: float) -> None:
    acceptance = Acceptance(steps=10, accepted=7, drafted=20)
    values = metrics.compute(TWO, WINDOW, acceptance, slo=SLO, gpus=8, energy_j=10.0)
    assert values[name] == pytest.approx(value)


@pytest.mark.parametrize("energy_j", [None, 0.0])
def test_energy_that_is_not_known_is_absent(energy_j: float | None) -> None:
    assert {"energy_j", "tokens_per_joule"}.isdisjoint(metrics.compute(TWO, WINDOW, None, energy_j=energy_j))


def test_failed_requests_count_in_no_throughput_and_no_latency() -> None:
    failed = request([1, 2, 900], outcome=Outcome.FAILED, tokens=NEVER)
    late = request([1, 2, 900], outcome=Outcome.TIMED_OUT, tokens=50)
    one, two = (request([100, 110], each=[1, 1]), request([120, 160], sent_ms=20, each=[2, 1]))
    mixed, clean = (
        {name: value for name, value in metrics.compute(each, WINDOW, None).items() if "concurre" not in name}
        for each in (records(failed, one, late, two), records(one, two))
    )
    assert mixed == clean
    assert "max_output_tokens_per_s" in clean


def test_speculation_makes_tpot_and_itl_differ() -> None:
    values = metrics.compute(records(request([100, 120, 140], tokens=9)), WINDOW, None)
    assert values["mean_tpot_ms"] == pytest.approx(40 / 8)
    assert values["mean_itl_ms"] == pytest.approx(20)


def test_an_unknown_token_count_takes_only_the_metrics_that_need_it() -> None:
    values = metrics.compute(records(request([100, 110]), request([100, 110], tokens=NEVER)), WINDOW, None)
    assert "output_throughput" not in values
    assert "mean_tpot_ms" not in values
    assert "tok_s_per_user" not in values
    assert values["mean_ttft_ms"] == 100
    assert values["request_throughput"] == 1.0


def test_an_unknown_input_count_takes_only_the_total() -> None:
    values = metrics.compute(records(request([100, 110], input_tokens=NEVER)), WINDOW, None)
    assert "total_token_throughput" not in values
    assert values["output_throughput"] == 1.0


def test_a_single_chunk_has_no_pace() -> None:
    values = metrics.compute(records(request([100], tokens=5)), WINDOW, None)
    assert not [name for name in values if "tpot" in name or "itl" in name or "decode" in name]
    assert values["mean_e2el_ms"] == 100


def test_zero_is_never_reported() -> None:
    values = metrics.compute(records(request([100, 100, 100, 160])), WINDOW, None)
    assert "median_itl_ms" not in values
    assert values["p99_itl_ms"] > 0


@pytest.mark.parametrize(
    "nothing", [records(), records(request([], outcome=Outcome.FAILED)), records(request([1], outcome=Outcome.FAILED))]
)
def test_nothing_succeeded(nothing: Records) -> None:
    values = metrics.compute(nothing, WINDOW, None, gpus=1)
    assert set(values) <= {"max_concurrent_requests", "mean_concurrency"}


@pytest.mark.parametrize(
    ("acceptance", "names"),
    [
        (None, set()),
        (Acceptance(steps=0, accepted=0, drafted=0), set()),
        (Acceptance(steps=5, accepted=0, drafted=0), {"acceptance_length"}),
        (Acceptance(steps=5, accepted=0, drafted=15), {"acceptance_length", "acceptance_rate"}),
        (
            Acceptance(steps=5, accepted=4, drafted=10, per_position=(4, 0)),
            {"acceptance_length", "acceptance_rate", "acceptance_at_0", "acceptance_at_1"},
        ),
    ],
)
def test_acceptance_that_nobody_counted_is_absent(acceptance: Acceptance | None, names: set[str]) -> None:
    assert set(metrics.compute(records(), WINDOW, acceptance)) == names


def test_acceptance_at_each_place_of_a_draft() -> None:
    counts = Acceptance(steps=50, accepted=64, drafted=600, per_position=(40, 20, 4, *[0] * 9))
    values = metrics.compute(records(), WINDOW, counts)
    assert [values[f"acceptance_at_{place}"] for place in range(8)] == [0.8, 0.4, 0.08, 0, 0, 0, 0, 0]
    assert not {"acceptance_at_8", "acceptance_at_11"} & set(values)


def test_the_table_is_read_without_numpy() -> None:
    import subprocess  # noqa: PLC0415
    import sys  # noqa: PLC0415

    script = "import sys, pytest_llmperf.metrics.definitions; print('numpy' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", script], text=True).strip() == "False"
