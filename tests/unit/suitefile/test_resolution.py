"""What a suite says after inheritance, the matrix and the defaults."""

from __future__ import annotations

import pytest

from pytest_llmperf import suitefile
from pytest_llmperf.model.case import workload_digest
from pytest_llmperf.model.slo import Slo
from pytest_llmperf.model.suite import (
    Arm,
    DataFile,
    Hardware,
    Lengths,
    Load,
    Model,
    Ramp,
    Trace,
    Warmup,
    Workload,
)
from tests.unit.suitefile.conftest import BASE, with_line
from tests.unit.suitefile.conftest import Load as Loader

ARM = "  toy: {engine: toy}"
WORDS = "  words: {kind: words, input_tokens: 64, output_tokens: 128, requests: 32}"


def test_the_smallest_suite_and_its_defaults(load: Loader) -> None:
    suite = load(BASE)
    assert suite.name == "chat"
    assert suite.why == ""
    assert suite.file.name == "chat.llmperf.yaml"
    assert suite.arms == {"toy": Arm(name="toy", engine="toy", model=Model(id="tiny"))}
    assert suite.workloads == {
        "words": Workload(name="words", kind="words", requests=32, input_tokens=64, output_tokens=128)
    }
    assert suite.loads == {"words": (Load(kind="burst"),)}
    assert suite.hardware == Hardware(gpu=None, count=0)
    assert suite.warmup == Warmup(requests=8, at_most_s=300.0)
    assert suite.stall_timeout_s == 300.0
    assert suite.request_timeout_s == 1800.0
    [gate] = suite.gates
    assert (gate.metric.name, gate.margin, gate.reference, gate.cv, gate.line) == (
        "output_throughput",
        0.05,
        None,
        None,
        9,
    )


def test_every_key_arrives(load: Loader) -> None:
    suite = load("""\
suite: full
why: All keys.
model: {id: org/tiny, path: /models/tiny, weights: dummy, layers: 4}
hardware: {gpu: H200, count: 8}
stall_timeout: 5s
request_timeout: 500ms
engines:
  a: {engine: toy, threads: 2, args: [--x, "1"], env: {A: "1"}, start_timeout: 40m, model: {mtp_damage: 0.3}}
workloads:
  w: {kind: words, input_tokens: 1, output_tokens: 2, requests: 3, output: natural, api: chat, temperature: 1,
      request_rate: 2}
gates:
  mean_ttft_ms: {margin: 40%, reference: a, cv: 3 %}
  acceptance_length: {margin: 0.05, cv: 0}
  acceptance_rate: {}
  slo_attainment: 0.05
slo: {ttft: 500ms, e2el: 30s}
warmup: {requests: 2, at_most: 1m}
""")
    assert suite.why == "All keys."
    assert suite.hardware == Hardware(gpu="H200", count=8)
    assert (suite.stall_timeout_s, suite.request_timeout_s) == (5.0, 0.5)
    assert suite.warmup == Warmup(requests=2, at_most_s=60.0)
    assert suite.slo == Slo(ttft_s=0.5, e2el_s=30.0)
    assert suite.arms["a"] == Arm(
        name="a",
        engine="toy",
        model=Model(id="org/tiny", path="/models/tiny", weights="dummy", shape={"layers": 4, "mtp_damage": 0.3}),
        options={"threads": 2},
        args=("--x", "1"),
        env={"A": "1"},
        start_timeout_s=2400.0,
    )
    assert suite.workloads["w"] == Workload(
        name="w",
        kind="words",
        requests=3,
        input_tokens=1,
        output_tokens=2,
        output="natural",
        api="chat",
        temperature=1.0,
    )
    assert suite.loads["w"] == (Load(kind="request_rate", value=2.0),)
    ttft, length, rate, _ = suite.gates
    assert (ttft.margin, ttft.reference, ttft.cv) == (0.4, "a", 0.03)
    assert (length.margin, length.cv) == (0.05, 0.0)
    assert rate.margin == rate.metric.margin, "the default of the metric table"


def test_an_arm_inherits_all_but_default_and_variant_of(load: Loader) -> None:
    suite = load(
        BASE.replace(
            ARM,
            """\
  toy: {engine: toy, threads: 2, args: [-a], env: {A: "1", B: "1"}, start_timeout: 1m, only: [words],
        model: {layers: 2}}
  more: {extends: toy, variant_of: toy, default: false, args+: [-b], env: {B: "2"}, model: {mtp_damage: 0.5}}
  most: {extends: more, args+: [-c], model: {id: other, layers: 3}}
  other: {extends: toy, args: [-z], threads: 3}""",
        )
    )
    more, most, other = (suite.arms[name] for name in ("more", "most", "other"))
    assert (more.engine, more.options, more.start_timeout_s, more.only) == ("toy", {"threads": 2}, 60.0, ("words",))
    assert (more.variant_of, more.default, more.judged_as) == ("toy", False, "toy")
    assert more.args == ("-a", "-b")
    assert more.env == {"A": "1", "B": "2"}
    assert more.model == Model(id="tiny", shape={"layers": 2, "mtp_damage": 0.5})
    assert (most.variant_of, most.default, most.args) == (None, True, ("-a", "-b", "-c"))
    assert most.model == Model(id="other", shape={"layers": 3, "mtp_damage": 0.5})
    assert (other.args, other.options, other.model.shape) == (("-z",), {"threads": 3}, {"layers": 2})


def test_a_parent_may_be_written_after_its_child(load: Loader) -> None:
    suite = load(with_line(ARM, "  b: {extends: toy}\n" + ARM))
    assert list(suite.arms) == ["b", "toy"]
    assert suite.arms["b"].engine == "toy"


def test_a_childs_load_replaces_its_parents(load: Loader) -> None:
    suite = load(
        with_line(
            WORDS,
            """\
  c4: {kind: words, input_tokens: 64, output_tokens: 128, requests: 32, concurrency: 4}
  open: {extends: c4, request_rate: 2}
  same: {extends: c4, requests: 8}
  all: {kind: words, input_tokens: 64, output_tokens: 128, requests: 32}""",
        )
    )
    assert {name: str(load) for name, (load,) in suite.loads.items()} == {
        "c4": "concurrency 4", "open": "request_rate 2", "same": "concurrency 4", "all": "burst",
    }  # fmt: skip
    assert suite.workloads["same"].requests == 8


@pytest.mark.parametrize("written", ["burst", "{burst: true}"])
def test_the_default_load(written: str, load: Loader) -> None:
    assert load(with_line("load: burst", f"load: {written}")).loads["words"] == (Load(kind="burst"),)


def test_values_of_loads_are_floats_as_digests_need_them(load: Loader) -> None:
    [named] = load(with_line("load: burst", "loads: {c4: {concurrency: 4}}")).loads["words"]
    assert named == Load(kind="concurrency", value=4.0, name="c4")
    assert isinstance(named.value, float)


def test_one_gpu_is_the_default_count(load: Loader) -> None:
    assert load(BASE + "hardware: {gpu: H200}\n").hardware == Hardware(gpu="H200", count=1)


def test_equal_loads_have_equal_digests_however_they_are_written(load: Loader) -> None:
    digests = set()
    for rate in ("2", "2.0"):
        suite = load(with_line("load: burst", f"load: {{request_rate: {rate}}}"))
        digests.add(workload_digest(suite.workloads["words"], suite.loads["words"][0]))
    assert len(digests) == 1


def test_only_names_workloads_before_or_after_the_matrix(load: Loader) -> None:
    text = BASE.replace(ARM, ARM + "\n  b: {engine: toy, only: [words]}\n  c: {engine: toy, only: [words-requests-8]}")
    suite = load(text + "matrix: {requests: [8, 16]}\n")
    assert suite.arms["toy"].only == ()
    assert suite.arms["b"].only == ("words-requests-8", "words-requests-16")
    assert suite.arms["c"].only == ("words-requests-8",)


LOADS = """\
loads:
  even: {request_rate: 2, burstiness: constant}
  rough: {request_rate: 2, burstiness: 0.5}
  poisson: {request_rate: 2, burstiness: 1}
  up: {ramp: {from: 1, to: 8}}
  faster: {ramp: {from: 1, to: 8, shape: exponential}, burstiness: 2}
  replay: {trace: {path: "${DATA}/t.jsonl", speed: 2, sha256: SHA}}
""".replace("SHA", "ab" * 32)


def test_open_loops(load: Loader) -> None:
    found = load(with_line("load: burst\n", LOADS), environ={"DATA": "/d"}).loads["words"]
    assert found == (
        Load(kind="request_rate", value=2.0, burstiness="constant", name="even"),
        Load(kind="request_rate", value=2.0, burstiness=0.5, name="rough"),
        Load(kind="request_rate", value=2.0, name="poisson"),
        Load(kind="ramp", ramp=Ramp(start=1.0, end=8.0), name="up"),
        Load(kind="ramp", ramp=Ramp(start=1.0, end=8.0, shape="exponential"), burstiness=2.0, name="faster"),
        Load(kind="trace", trace=Trace(data=DataFile(path="/d/t.jsonl", sha256="ab" * 32), speed=2.0), name="replay"),
    )
    assert [str(each) for each in found] == [
        "request_rate 2, burstiness constant", "request_rate 2, burstiness 0.5", "request_rate 2", "linear ramp 1 to 8",
        "exponential ramp 1 to 8, burstiness 2.0", "trace x 2",
    ]  # fmt: skip
    digests = {workload_digest(Workload(name="w", kind="words", requests=1), each) for each in found}
    assert len(digests) == 6


KINDS = """\
suite: kinds
model: {id: tiny, path: "${MODELS}/tiny"}
engines:
  toy: {engine: toy}
workloads:
  ids: {input_tokens: {uniform: [4, 8]}, output_tokens: {mean: 9, stdev: 2.5, min: 1, max: 20}, requests: 32}
  shared: {extends: ids, kind: shared-prefix, input_tokens: 64, prefix_tokens: 32, groups: 4, vocab: 100,
           expect_prefix_hits: [40%, 0.5]}
  random: {kind: random, input_tokens: 64, output_tokens: 4, requests: 8, range_ratio: 0.5}
  talks: {kind: sharegpt, path: "${DATA}/x.json", requests: 8, rules: vllm-0.11.0, output: natural}
  again: {extends: talks, sha256: SHA, oversample: true, output_tokens: 4}
load: burst
gates:
  output_throughput: 5%
""".replace("SHA", "ab" * 32)


def test_every_kind_and_its_keys(load: Loader) -> None:
    found = load(KINDS, environ={"MODELS": "/m", "DATA": "/d"}).workloads
    lengths = Lengths(min=1, max=20, mean=9.0, stdev=2.5)
    assert found == {
        "ids": Workload(
            name="ids", kind="token-ids", requests=32, input_tokens=Lengths(min=4, max=8), output_tokens=lengths
        ),
        "shared": Workload(
            name="shared", kind="shared-prefix", requests=32, input_tokens=64, output_tokens=lengths,
            prefix_tokens=32, groups=4, vocab=100, expect_prefix_hits=(0.4, 0.5),
        ),
        "random": Workload(
            name="random", kind="random", requests=8, input_tokens=64, output_tokens=4, range_ratio=0.5,
            rules="vllm-0.32.0",
        ),
        "talks": Workload(
            name="talks", kind="sharegpt", requests=8, rules="vllm-0.11.0", output="natural",
            data=DataFile(path="/d/x.json"),
        ),
        "again": Workload(
            name="again", kind="sharegpt", requests=8, rules="vllm-0.11.0", output="natural", oversample=True,
            output_tokens=4, data=DataFile(path="/d/x.json", sha256="ab" * 32),
        ),
    }  # fmt: skip


def test_a_workload_says_what_it_asks_for(load: Loader) -> None:
    found = load(KINDS, environ={"MODELS": "/m", "DATA": "/d"}).workloads
    assert str(found["ids"]) == "token-ids: 32 requests, 4 to 8 in, 9 ± 2.5, 1 to 20 out"
    assert str(found["talks"]) == "sharegpt: 8 requests"


def test_which_raw_responses_are_kept_is_no_part_of_what_is_asked(load: Loader) -> None:
    plain, everything = load(BASE), load(BASE, overrides={"keep_raw": "all"})
    assert (plain.keep_raw, everything.keep_raw) == ("errors", "all")
    assert everything.overrides == {"keep_raw": "all"}
    [before], [after] = suitefile.expand(plain), suitefile.expand(everything)
    assert workload_digest(before.workload, before.load) == workload_digest(after.workload, after.load)
