from __future__ import annotations

import pytest

from pytest_llmperf import suitefile
from pytest_llmperf.errors import SuiteError, UsageError
from tests.unit.suitefile.conftest import BASE, Load, with_line

WORDS = "  words: {kind: words, input_tokens: 64, output_tokens: 128, requests: 32}"


def test_a_value_is_replaced(load: Load) -> None:
    suite = load(BASE, overrides={"workloads.words.requests": "4", "gates.output_throughput": "40%"})
    assert suite.workloads["words"].requests == 4
    assert suite.gates[0].margin == 0.4
    assert suite.overrides == {"workloads.words.requests": "4", "gates.output_throughput": "40%"}


@pytest.mark.parametrize(
    ("key", "value", "path"),
    [
        ("stall_timeout", "5s", "stall_timeout_s"),
        ("warmup.at_most", "5s", "warmup.at_most_s"),
        ("slo.ttft", "5s", "slo.ttft_s"),
    ],
)
def test_a_key_that_is_not_in_the_file_may_be_set(key: str, value: str, path: str, load: Load) -> None:
    found: object = load(BASE, overrides={key: value})
    for name in path.split("."):
        found = getattr(found, name)
    assert found == 5.0


def test_keys_of_adapters_may_be_set(load: Load) -> None:
    arm = load(BASE, overrides={"engines.toy.threads": "2", "engines.toy.model.layers": "9", "model.id": "x"}).arms[
        "toy"
    ]
    assert (arm.options, arm.model.shape, arm.model.id) == ({"threads": 2}, {"layers": 9}, "x")


def test_a_short_form_gives_way_to_the_mapping(load: Load) -> None:
    suite = load(BASE, overrides={"load.concurrency": "8", "gates.output_throughput.cv": "1%"})
    assert str(suite.loads["words"][0]) == "concurrency 8"
    assert suite.gates[0].cv == 0.01


def test_a_gate_and_a_variable_may_be_added(load: Load) -> None:
    suite = load(BASE, overrides={"gates.mean_ttft_ms": "5%", "engines.toy.env.A.B": "x", "matrix.requests": "[1, 2]"})
    assert [gate.metric.name for gate in suite.gates] == ["output_throughput", "mean_ttft_ms"]
    assert suite.arms["toy"].env == {"A.B": "x"}
    assert len(suite.workloads) == 2


def test_names_with_dots_are_found(load: Load) -> None:
    text = with_line("  words:", "  llama-3.1:")
    assert load(text, overrides={"workloads.llama-3.1.requests": "4"}).workloads["llama-3.1"].requests == 4


@pytest.mark.parametrize(
    "key", ["workloads.wrds.requests", "workloads.words.requets", "engines.new.engine", "x", "suite.x"]
)
def test_a_key_that_means_nothing_here_is_left_alone(key: str, load: Load) -> None:
    suite = load(BASE, overrides={key: "4"})
    assert suite.overrides == {}
    assert suite == load(BASE)


def test_a_mistake_names_the_option_instead_of_a_line(load: Load) -> None:
    for key, value, message in (
        ("workloads.words.requests", "many", "workloads.words.requests: 'many' must be a whole number"),
        ("workloads.words.requests", "", "workloads.words.requests: has no value; write one, or remove the key"),
        ("workloads.words.requests", "[1", "workloads.words.requests: '[1' is not a valid YAML value"),
        ("engines.toy.args", "[-tp, 8]", 'engines.toy.args[1]: 8 must be text; write "8"'),
        ("engines.toy.env.A", "1", 'engines.toy.env.A: 1 must be text; write "1"'),
    ):
        with pytest.raises(SuiteError) as caught:
            load(BASE, overrides={key: value})
        assert [mistake.line for mistake in caught.value.mistakes] == [0]
        assert str(caught.value).endswith(f"chat.llmperf.yaml: --llmperf-set {key}={value}: {message}")


def test_overrides_replace_what_would_be_a_mistake(load: Load) -> None:
    assert load(with_line("requests: 32", "requests: many"), overrides={"workloads.words.requests": "4"})


def test_an_override_must_apply_to_one_suite(load: Load) -> None:
    suite = load(BASE, overrides={"workloads.words.requests": "4", "workloads.wrds.requests": "4"})
    suitefile.check_overrides({"workloads.words.requests": "4"}, [suite])
    with pytest.raises(
        UsageError, match=r"--llmperf-set workloads.wrds.requests=4: .* did you mean 'workloads.words.requests'\?"
    ):
        suitefile.check_overrides({"workloads.words.requests": "4", "workloads.wrds.requests": "4"}, [suite])


def test_an_engine_must_be_an_arm_of_one_suite(load: Load) -> None:
    suite = load(BASE)
    suitefile.check_engines(["toy"], [suite])
    with pytest.raises(UsageError, match=r"--llmperf-engine: no suite has an arm 'tay'; did you mean 'toy'\?"):
        suitefile.check_engines(["toy", "tay"], [suite])


def test_the_parts_of_a_load_may_be_set_whatever_the_loads_are_called(load: Load) -> None:
    text = with_line("load: burst", "loads: {ramp: {ramp: {from: 1, to: 2}}}")
    suite = load(text, overrides={"loads.ramp.ramp.to": "9", "loads.ramp.burstiness": "constant"})
    [found] = suite.loads["words"]
    assert found.ramp is not None
    assert (found.ramp.end, found.burstiness) == (9.0, "constant")
    [alone] = load(with_line("burst", "{trace: {path: x}}"), overrides={"load.trace.speed": "4"}).loads["words"]
    assert alone.trace is not None
    assert alone.trace.speed == 4.0
