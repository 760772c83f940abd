"""What is wrong with a suite file, in words: each case names the value and what would be right."""
# ruff: noqa: E501 (tables, one case a line)

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_llmperf import suitefile
from pytest_llmperf.errors import SuiteError
from pytest_llmperf.model.suite import Suite
from tests.unit.suitefile.conftest import BASE, Complaints, with_line

DATA = Path(__file__).parents[2] / "data"
WORDS = "  words: {kind: words, input_tokens: 64, output_tokens: 128, requests: 32}"
ARM = "  toy: {engine: toy}"


def test_five_mistakes_are_five_messages(golden: Callable[[str, str], None], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(DATA)
    with pytest.raises(SuiteError) as caught:
        suitefile.load_suite(DATA / "suites" / "five_mistakes.yaml", overrides={}, environ={})
    golden("suitefile_five_mistakes.txt", f"{caught.value}\n")


STRUCTURE = {
    "unknown-key": (with_line("load: burst", "laod: burst\nload: burst"), "7: laod: unknown field; did you mean 'load'?"),
    "like-no-key": (BASE + "zzz: 5h\n", "10: zzz: unknown field; known: budget, engines, "),
    "text": (with_line("suite: chat", "suite: 7"), '1: suite: 7 must be text; write "7"'),
    "empty": (with_line("suite: chat", "suite: ''"), "1: suite: '' must not be empty"),
    "null": (with_line("load: burst", "load:"), "7: load: has no value; write one, or remove the key"),
    "count": (with_line("requests: 32", "requests: 0"), "6: workloads.words.requests: 0 must be at least 1"),
    "too-many": (with_line("requests: 32", "requests: 20000000"), "6: workloads.words.requests: 20000000 must be at most 10000000"),
    "matrix-explodes": (BASE + f"matrix: {{input_tokens: {list(range(1, 102))}, requests: {list(range(1, 102))}}}\n", "10: matrix: makes 10201 of every workload; 10000 is the most"),
    "exact-time": (with_line("output_throughput: 5%", "output_throughput: {cv: 0}"), "9: gates.output_throughput.cv: 0 declares an exact count"),
    "whole": (with_line("requests: 32", "requests: 1.5"), "6: workloads.words.requests: 1.5 must be a whole number"),
    "bool-is-no-number": (with_line("requests: 32", "requests: true"), "6: workloads.words.requests: true must be a whole number"),
    "literal": (with_line("kind: words", "kind: word"), "6: workloads.words.kind: 'word' must be 'token-ids', 'words', 'shared-prefix', 'custom', 'random' or 'sharegpt'"),
    "choice": (with_line(WORDS, WORDS[:-1] + ", output: exakt}"), "6: workloads.words.output: 'exakt' must be 'exact' or 'natural'"),
    "temperature": (with_line(WORDS, WORDS[:-1] + ", temperature: -1}"), "6: workloads.words.temperature: -1 must be at least 0"),
    "infinite": (with_line(WORDS, WORDS[:-1] + ", temperature: 1e999}"), "6: workloads.words.temperature: inf must be a finite number"),
    "list": (with_line(ARM, ARM[:-1] + ", args: -tp 8}"), "4: engines.toy.args: '-tp 8' must be a list, such as [a, b]"),
    "argument": (with_line(ARM, ARM[:-1] + ", args: [-tp, 8]}"), '4: engines.toy.args[1]: 8 must be text; write "8"'),
    "variable": (with_line(ARM, ARM[:-1] + ", env: {OMP_NUM_THREADS: 1}}"), '4: engines.toy.env.OMP_NUM_THREADS: 1 must be text; write "1"'),
    "mapping": (with_line(ARM, "  toy: toy"), "4: engines.toy: 'toy' must be a mapping, such as {key: value}"),
    "section": (with_line("engines:\n" + ARM, "engines: [toy]"), "3: engines: [...] must be a mapping, such as {key: value}"),
    "duration": (BASE + "stall_timeout: 300\n", "10: stall_timeout: 300 must be a duration with a unit, such as 500ms, 5s, 40m or 2h"),
    "switch": (with_line(ARM, ARM[:-1] + ", default: no}"), "4: engines.toy.default: 'no' must be true or false"),
    "hardware": (BASE + "hardware: H200\n", "10: hardware: 'H200' must be any, or {gpu: NAME, count: N}"),
    "hardware-count": (BASE + "hardware: {count: 8}\n", "10: hardware: needs 'gpu', a part of the GPU's name such as H200"),
    "warmup": (BASE + "warmup: {until: steady}\n", "10: warmup.until: unknown field; known: at_most, requests"),
    "slo-empty": (BASE + "slo: {}\n", "10: slo: must hold at least one limit, such as slo: {ttft: 500ms, tpot: 50ms}"),
    "slo-value": (BASE + "slo: {ttft: 500}\n", "10: slo.ttft: 500 must be a duration with a unit, such as 500ms, 5s, 40m or 2h"),
    "slo-key": (BASE + "slo: {itl: 5ms}\n", "10: slo.itl: unknown field; known: e2el, tpot, ttft"),
    "goodput": (BASE + "  slo_attainment: 0.1\n", "10: gates.slo_attainment: needs limits at the top of the suite, such as slo: {ttft: 500ms, tpot: 50ms}"),
    "goodput-excused": (BASE + "  slo_attainment: 0.1\nslo: 500ms\n", "11: slo: '500ms' must be a mapping, such as {key: value}"),
    "twice": (BASE + "load: burst\n", "10: load: written twice, first on line 7; remove one"),
    "long-value": (with_line("kind: words", "kind: " + "x" * 99), "6: workloads.words.kind: '" + "x" * 55 + "...' must be 'token-ids', 'words', 'shared-prefix', 'custom', 'random' or 'sharegpt'"),
}  # fmt: skip

MISSING = {
    "suite": (with_line("suite: chat\n", ""), "1: a suite needs a name, such as suite: chat"),
    "model": (with_line("model: {id: tiny}\n", ""), "1: a suite needs 'model' with an id, such as model: {id: Qwen/Qwen3-0.6B}"),
    "model-id": (with_line("{id: tiny}", "{weights: dummy}"), "2: model: a suite needs 'model' with an id, "),
    "engines": (with_line("engines:\n" + ARM, "engines: {}"), "3: engines: a suite needs 'engines' with at least one arm"),
    "engine": (with_line(ARM, "  toy: {args: []}"), "4: engines.toy: needs 'engine', one of remote, toy"),
    "workloads": (with_line("workloads:\n" + WORDS, "workloads: {}"), "5: workloads: a suite needs 'workloads' with at least one entry"),
    "requests": (with_line(", requests: 32", ""), "6: workloads.words: needs 'requests', such as requests: 32"),
    "load": (with_line("load: burst\n", ""), "6: workloads.words: needs a load: write load: burst or load: {concurrency: 4} at the top, or concurrency, request_rate or burst here"),
    "gates": (with_line("gates:\n  output_throughput: 5%\n", ""), "1: a suite needs 'gates' with at least one metric"),
    "url": (with_line("engine: toy", "engine: remote"), "4: engines.toy: needs 'url'"),
}  # fmt: skip

NAMES = {
    "suite": (with_line("suite: chat", "suite: my suite"), "1: suite: 'my suite' is no name: use letters, digits, '.', '_' and '-', "),
    "arm": (with_line("  toy:", "  toy[1]:"), "4: engines.toy[1]: 'toy[1]' is no name: "),
    "at": (with_line("  toy:", "  toy@1:"), "4: engines.toy@1: 'toy@1' is no name: "),
    "workload": (with_line("  words:", "  a/b:"), "6: workloads.a/b: 'a/b' is no name: "),
    "load": (with_line("load: burst", "loads: {a::b: {burst: true}}"), "7: loads.a::b: 'a::b' is no name: "),
    "newline": (with_line("suite: chat", 'suite: "chat\\n"'), "1: suite: 'chat\\n' is no name: "),
    "engine": (with_line("engine: toy", "engine: tay"), "4: engines.toy.engine: unknown engine 'tay'; did you mean 'toy'?"),
    "extends": (with_line(ARM, ARM + "\n  b: {extends: toi}"), "5: engines.b.extends: 'toi' is not in engines; did you mean 'toy'?"),
    "extends-itself": (with_line(ARM, ARM + "\n  b: {extends: c}\n  c: {extends: b}"), "5: engines.b.extends: b -> c -> b: an entry cannot extend itself; remove one extends"),
    "variant": (with_line(ARM, ARM + "\n  b: {extends: toy, variant_of: toi, default: false}"), "5: engines.b.variant_of: 'toi' is no other arm; did you mean 'toy'?"),
    "variant-of-itself": (with_line(ARM, ARM[:-1] + ", variant_of: toy}"), "4: engines.toy.variant_of: 'toy' is no other arm"),
    "only": (with_line(ARM, ARM[:-1] + ", only: [word]}"), "4: engines.toy.only[0]: unknown workload 'word'; did you mean 'words'?"),
    "only-nothing": (with_line(ARM, ARM[:-1] + ", only: []}"), "4: engines.toy.only: [] must hold at least 1"),
    "metric": (with_line("output_throughput", "outputthroughput"), "9: gates.outputthroughput: unknown metric; did you mean 'output_throughput'?"),
    "gate-only": (with_line("5%", "{only: [toi]}"), "9: gates.output_throughput.only[0]: unknown arm or workload 'toi'; did you mean 'toy'?"),
    "reference": (with_line("5%", "{reference: toi}"), "9: gates.output_throughput.reference: unknown arm 'toi'; did you mean 'toy'?"),
    "adapter-key": (with_line(ARM, ARM[:-1] + ", thread: 2}"), "4: engines.toy.thread: unknown field; did you mean 'threads'?"),
    "adapter-value": (with_line(ARM, ARM[:-1] + ", threads: two}"), "4: engines.toy.threads: 'two' must be a whole number"),
    "adapter-range": (with_line("{id: tiny}", "{id: tiny, mtp_damage: 2}"), "2: model.mtp_damage: 2 must be at most 1"),
    "shape-env": (with_line("{id: tiny}", "{id: tiny, env: a}"), "2: model.env: unknown field"),
    "shape-args": (with_line("{id: tiny}", "{id: tiny, args+: 1}"), "2: model.args+: unknown field"),
    "shape-key": (with_line("{id: tiny}", "{id: tiny, layer: 2}"), "2: model.layer: unknown field; did you mean 'layers'?"),
}  # fmt: skip

IDS = "  ids: {vocab: 9, input_tokens: 8, output_tokens: 8, requests: 8}"
SHARED = "  ids: {kind: shared-prefix, vocab: 9, input_tokens: 8, output_tokens: 8, requests: 8, prefix_tokens: 4, expect_prefix_hits: [0, 1]}"
FILE = "  f: {kind: custom, path: x.jsonl, requests: 8}"

KINDS = {
    "vocabulary": (with_line(WORDS, IDS.replace("vocab: 9, ", "")), "6: workloads.ids: kind token-ids needs the size of the model's vocabulary; write path, the folder of the model's files, in the model of arm 'toy', or vocab: N here"),
    "tokenizer": (with_line(WORDS, IDS.replace("vocab: 9", "kind: random")), "6: workloads.ids.kind: kind random needs the model's tokenizer; write path, the folder of the model's files, in the model of arm 'toy'"),
    "chat-of-ids": (with_line(WORDS, IDS.replace("vocab", "api: chat, vocab")), "6: workloads.ids.api: a chat cannot carry token ids, which kind token-ids sends; write kind: words"),
    "path": (with_line(WORDS, "  f: {kind: custom, requests: 8}"), """6: workloads.f: needs 'path', such as path: "${DATA}/prompts.jsonl\""""),
    "prefix": (with_line(WORDS, SHARED.replace("prefix_tokens: 4, ", "")), "6: workloads.ids: needs 'prefix_tokens', such as prefix_tokens: 32"),
    "hits": (with_line(WORDS, SHARED.replace(", expect_prefix_hits: [0, 1]", "")), "6: workloads.ids: needs 'expect_prefix_hits', such as expect_prefix_hits: [30%, 50%]"),
    "long-prefix": (with_line(WORDS, SHARED.replace("prefix_tokens: 4", "prefix_tokens: 8")), "6: workloads.ids.prefix_tokens: 8 must be less than input_tokens, of which it is a part"),
    "turns-of-completions": (with_line(WORDS, WORDS[:-1] + ", turns: 3, expect_prefix_hits: [0, 1]}"), "6: workloads.words.turns: a conversation needs api: chat"),
    "turns-hits": (with_line(WORDS, WORDS[:-1] + ", turns: 3, api: chat}"), "6: workloads.words: needs 'expect_prefix_hits', such as expect_prefix_hits: [30%, 90%]: each turn repeats the ones before it"),
    "one-turn": (with_line(WORDS, WORDS[:-1] + ", turns: 1, api: chat, expect_prefix_hits: [0, 1]}"), "6: workloads.words.turns: 1 must be at least 2"),
    "turns-of-others": (with_line(WORDS, IDS[:-1] + ", turns: 3}"), "6: workloads.ids.turns: means nothing to a workload of kind token-ids"),
    "foreign": (with_line(WORDS, WORDS[:-1] + ", vocab: 9}"), "6: workloads.words.vocab: means nothing to a workload of kind words"),
    "foreign-inherited": (with_line(WORDS, IDS + "\n  w: {extends: ids, kind: words}"), "7: workloads.w.kind: the inherited vocab means nothing to a workload of kind words"),
    "foreign-axis": (with_line(WORDS, FILE[:-1] + ", output_tokens: 8}") + "matrix: {input_tokens: [8]}\n", "10: matrix.input_tokens: means nothing to workload 'f' of kind custom; remove one of the two"),
    "file-lengths": (with_line(WORDS, FILE[:-1] + ", output_tokens: {uniform: [1, 2]}}"), "6: workloads.f.output_tokens: must be a whole number for kind custom"),
    "length": (with_line("input_tokens: 64", "input_tokens: 6.4"), "6: workloads.words.input_tokens: 6.4 must be a whole number"),
    "no-length": (with_line("input_tokens: 64", "input_tokens: 0"), "6: workloads.words.input_tokens: 0 must be at least 1"),
    "many-ids": (with_line("kind: words,", "kind: words, vocab: 20000000,"), "6: workloads.words.vocab: 20000000 must be at most 10000000"),
    "long": (with_line("input_tokens: 64", "input_tokens: 20000000"), "6: workloads.words.input_tokens: 20000000 must be at most 10000000"),
    "longs": (with_line("input_tokens: 64", "input_tokens: {uniform: [1, 20000000]}"), "6: workloads.words.input_tokens: must be a whole number, {uniform: [MIN, MAX]} or {mean: M, stdev: S, min: MIN, max: MAX}, each at least 1 and at most 10000000"),
    "lengths": (with_line("input_tokens: 64", "input_tokens: {mean: 5}"), "6: workloads.words.input_tokens: must be a whole number, {uniform: [MIN, MAX]} or {mean: M, stdev: S, min: MIN, max: MAX}, each at least 1"),
    "lengths-more": (with_line("input_tokens: 64", "input_tokens: {uniform: [1, 2], min: 1}"), "6: workloads.words.input_tokens: must be a whole number, {uniform: "),
    "lengths-order": (with_line("input_tokens: 64", "input_tokens: {uniform: [9, 2]}"), "6: workloads.words.input_tokens: 9 to 2: the smallest comes first and the mean lies between"),
    "lengths-mean": (with_line("input_tokens: 64", "input_tokens: {mean: 1, stdev: 1, min: 2, max: 3}"), "6: workloads.words.input_tokens: 1 ± 1, 2 to 3: the smallest comes first and the mean lies between"),
    "hits-one": (with_line(WORDS, WORDS[:-1] + ", expect_prefix_hits: 1}"), "6: workloads.words.expect_prefix_hits: 1 must be two shares, such as [0.4, 0.6] or [40%, 60%]"),
    "hits-order": (with_line(WORDS, WORDS[:-1] + ", expect_prefix_hits: [2%, 1%]}"), "6: workloads.words.expect_prefix_hits: [...] must be two shares of at most 100%, the smaller one first"),
    "sha": (with_line(WORDS, FILE[:-1] + ", sha256: abc}"), "6: workloads.f.sha256: 'abc' must match "),
    "rules": (with_line(WORDS, "  r: {kind: random, input_tokens: 8, output_tokens: 8, requests: 8, rules: vllm-0.1}").replace("{id: tiny}", "{id: tiny, path: /m}"), "6: workloads.r.rules: 'vllm-0.1' must be 'vllm-0.11.0' or 'vllm-0.32.0'"),
}  # fmt: skip

MARGINS = {
    "above-one": (with_line("5%", "40"), "9: gates.output_throughput: 40 must be at most 90% or 0.9: hardly any loss is larger, so the gate could not fail; did you mean 40%?"),
    "all-of-it": (with_line("5%", "100%"), "9: gates.output_throughput: 100% must be at most 90% or 0.9: hardly any loss is larger, so the gate could not fail"),
    "nearly-all": (with_line("5%", "{margin: 90.1%}"), "9: gates.output_throughput.margin: 90.1% must be at most 90% or 0.9: hardly any loss is larger"),
    "all-lengths": (with_line("output_throughput: 5%", "acceptance_length: {margin: 1000000000}"), "9: gates.acceptance_length.margin: 1000000000 must be at most 5 tok/step: hardly any loss is larger"),
    "all-of-a-rate": (with_line("output_throughput: 5%", "acceptance_rate: {margin: 1}"), "9: gates.acceptance_rate.margin: 1 must be at most 0.9: hardly any loss is larger"),
    "noise": (with_line("5%", "{cv: 99.9%}"), "9: gates.output_throughput.cv: 99.9% must be at most 50% or 0.5: no loss shows through more noise, so the gate could not fail"),
    "noise-of-counts": (with_line("output_throughput: 5%", "acceptance_length: {cv: 1e9}"), "9: gates.acceptance_length.cv: 1000000000 must be at most 0.5 tok/step: no loss shows through more noise"),
    "zero": (with_line("5%", "0"), "9: gates.output_throughput: 0 must be more than nothing: no measurement can show a loss of zero"),
    "negative": (with_line("5%", "{margin: -0.1}"), "9: gates.output_throughput.margin: -0.1 must be finite and not negative"),
    "text": (with_line("5%", "atuo"), "9: gates.output_throughput: 'atuo' must be a number, a percentage such as 3%, or auto"),
    "cv-auto": (with_line("5%", "{cv: auto}"), "9: gates.output_throughput.cv: 'auto' must be a number or a percentage, such as 0.03 or 3%"),
    "auto-reference": (with_line("5%", "{margin: auto, reference: toy}"), "9: gates.output_throughput.margin: auto goes by the calibration in the stored baseline, and reference: toy compares with none; write a margin, such as 5%"),
    "auto-exact": (with_line("output_throughput: 5%", "acceptance_length: {margin: auto, cv: 0}"), "9: gates.acceptance_length.margin: auto goes by the noise that calibration found, and cv: 0 declares that there is none; write a margin, such as 0.03"),
    "absolute": (with_line("output_throughput: 5%", "acceptance_length: 3%"), "9: gates.acceptance_length: 3%: acceptance_length is judged by its absolute difference; write a number in tok/step, such as 0.03"),
    "absolute-cv": (with_line("output_throughput: 5%", "acceptance_rate: {cv: 3%}"), "9: gates.acceptance_rate.cv: 3%: acceptance_rate is judged by its absolute difference; write a number, such as 0.02"),
    "cv": (with_line("5%", "{cv: 2}"), "9: gates.output_throughput.cv: 2 must be at most 50% or 0.5: no loss shows through more noise, so the gate could not fail; did you mean 2%?"),
}  # fmt: skip

LOADS = {
    "two-inline": (with_line(WORDS, WORDS[:-1] + ", concurrency: 4, burst: true}"), "6: workloads.words.concurrency: burst and concurrency exclude each other: a load is one of concurrency: N, request_rate: R, burst: true, ramp: {...} and trace: {...}"),
    "none": (with_line("load: burst", "loads: {c4: {}}"), "7: loads.c4: a load needs one of concurrency: N, request_rate: R, burst: true, ramp: {...} and trace: {...}"),
    "no-loads": (with_line("load: burst", "loads: {}"), "7: loads: must hold at least one load, such as c4: {concurrency: 4}"),
    "word": (with_line("load: burst", "load: brust"), "7: load: 'brust' must be burst, {concurrency: N}, {request_rate: R}, {ramp: {...}} or {trace: {...}}"),
    "burstiness-alone": (with_line(WORDS, WORDS[:-1] + ", burstiness: 2}"), "6: workloads.words.burstiness: goes with request_rate or ramp, beside it"),
    "burstiness-of-others": (with_line("load: burst", "load: {concurrency: 2, burstiness: 2}"), "7: load.burstiness: goes with request_rate or ramp, beside it"),
    "burstiness": (with_line("load: burst", "load: {request_rate: 2, burstiness: poisson}"), "7: load.burstiness: 'poisson' must be a number from 0.01 to 10000000, or constant"),
    "ramp": (with_line("load: burst", "load: {ramp: {from: 1}}"), "7: load.ramp: needs 'to'"),
    "ramp-shape": (with_line("load: burst", "load: {ramp: {from: 1, to: 2, shape: cubic}}"), "7: load.ramp.shape: 'cubic' must be 'linear' or 'exponential'"),
    "ramp-key": (with_line("load: burst", "load: {ramp: {from: 1, to: 2, shap: linear}}"), "7: load.ramp.shap: unknown field; did you mean 'shape'?"),
    "trace": (with_line("load: burst", "load: {trace: {speed: 2}}"), "7: load.trace: needs 'path'"),
    "trace-speed": (with_line(WORDS, WORDS[:-1] + ", trace: {path: x, speed: 0}}"), "6: workloads.words.trace.speed: 0 must be more than 0"),
    "burst-false": (with_line("load: burst", "load: {burst: false}"), "7: load.burst: false must be true"),
    "rate": (with_line("load: burst", "load: {request_rate: 0}"), "7: load.request_rate: 0 must be more than 0"),
    "load-and-loads": (BASE + "loads: {c4: {concurrency: 4}}\n", "10: loads: the load is already set by load; remove one of the two"),
    "load-and-matrix": (BASE + "matrix: {concurrency: [1, 2]}\n", "10: matrix.concurrency: the load is already set by load; remove one of the two"),
    "both-axes": (with_line("load: burst", "matrix: {concurrency: [1], request_rate: [1]}"), "7: matrix.request_rate: the load is already set by matrix.concurrency; remove one of the two"),
    "listed-twice": (BASE + "matrix: {requests: [8, 16, 8]}\n", "10: matrix.requests[2]: 8 is listed twice; remove one"),
    "same-rate": (with_line("load: burst", "matrix: {request_rate: [2, 2.0]}"), "7: matrix.request_rate[1]: 2 is listed twice; remove one"),
    "empty-axis": (BASE + "matrix: {requests: []}\n", "10: matrix.requests: [] must hold at least 1"),
    "empty-matrix": (BASE + "matrix: {}\n", "10: matrix: must hold at least one list of values"),
    "scalar-axis": (BASE + "matrix: {requests: 8}\n", "10: matrix.requests: 8 must be a list, such as [a, b]"),
    "nothing-left": (with_line(WORDS, WORDS[:-1] + ", burst: true}").replace("load: burst", "matrix: {concurrency: [1]}"), "7: matrix.concurrency: changes nothing: every workload has a load of its own; remove theirs or this"),
}  # fmt: skip

RELATIONS = {
    "model-of-another": (
        with_line(ARM, ARM + "\n  b: {engine: remote, url: x}").replace("{id: tiny}", "{id: tiny, layers: 2}"),
        "2: model.layers: means nothing to the engine of arm 'b'; write it only for the arms that take it",
    ),
    "option-of-another": (
        with_line(ARM, "  toy: {engine: toy, threads: 2}\n  b: {extends: toy, engine: remote, url: x}"),
        "4: engines.toy.threads: means nothing to the engine of arm 'b'; write it only for the arms that take it",
    ),
    "variant-of-variant": (
        with_line(ARM, ARM + "\n  b: {extends: toy, variant_of: toy, default: false}\n  c: {extends: toy, variant_of: b, default: false}"),
        "6: engines.c.variant_of: 'b' is itself a variant, of 'toy'; name that one",
    ),
    "same-ids": (with_line(ARM, ARM + "\n  b: {extends: toy, variant_of: toy}"), "5: engines.b.variant_of: would run beside 'toy' under the same case ids; write default: false"),
    "reference-variant": (
        with_line(ARM, ARM + "\n  b: {extends: toy, variant_of: toy, default: false}").replace("5%", "{reference: b}"),
        "10: gates.output_throughput.reference: 'b' is a variant; compare with an arm that is none, such as 'toy'",
    ),
    "ungated": (
        with_line(ARM, ARM + "\n  b: {engine: toy}").replace("5%", "{only: [b]}"),
        "4: engines.toy: no gate judges case 'toy/words'; widen a gate's only, or leave the workload out by the arm's only",
    ),
    "both": (with_line("  words:", "  toy:").replace("5%", "{only: [toy]}"), "9: gates.output_throughput.only[0]: 'toy' is both an arm and a workload; rename one of them"),
}  # fmt: skip

ALL = {
    f"{group}-{name}": case
    for group, cases in {
        "structure": STRUCTURE, "missing": MISSING, "names": NAMES, "margins": MARGINS, "loads": LOADS, "kinds": KINDS,
        "relations": RELATIONS,
    }.items()
    for name, case in cases.items()
}  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), ALL.values(), ids=ALL.keys())
def test_one_mistake_is_one_message(text: str, expected: str, complaints: Complaints) -> None:
    found = complaints(text)
    assert len(found) == 1, found
    assert found[0].startswith(expected)


def test_mistakes_of_all_kinds_come_at_once(complaints: Complaints) -> None:
    text = """\
suite: chat
model: {id: tiny, path: "${MODELS}/x", layrs: 3}
engines:
  toy: {engine: toy, args: [-tp, 8], thread: 3, only: [wrds]}
  b: {extends: tyo, variant_of: toy, default: "no"}
  c: {engine: remot, start_timeout: 40}
workloads:
  words: {kind: word, input_tokens: 64, output_tokens: many, requets: 32, concurrency: 0}
loads: {c: {concurrency: 4, burst: true}}
gates:
  output_throughput: 5
  acceptance_length: 3%
  mean_e2el_ms: {reference: b, margn: 3}
  mean_e2el_ms: 5%
"""
    assert [re.match(r"\d+: [^:]+", line)[0] for line in complaints(text)] == [  # type: ignore[index]
        "2: model.layrs",
        "2: model.path",
        "4: engines.toy.args[1]",
        "4: engines.toy.only[0]",
        "4: engines.toy.thread",
        "5: engines.b.default",
        "5: engines.b.extends",
        "6: engines.c.engine",
        "6: engines.c.start_timeout",
        "8: workloads.words.concurrency",
        "8: workloads.words.kind",
        "8: workloads.words.output_tokens",
        "8: workloads.words.requets",
        "9: loads.c.concurrency",
        "11: gates.output_throughput",
        "12: gates.acceptance_length",
        "13: gates.mean_e2el_ms.margn",
        "13: gates.mean_e2el_ms.reference",
        "14: gates.mean_e2el_ms",
    ]


def test_a_mistake_in_a_parent_is_reported_once(complaints: Complaints) -> None:
    text = with_line(ARM, "  toy: {engine: toy, thread: 2}\n  b: {extends: toy}\n  c: {extends: b}")
    assert len(complaints(text)) == 1
    assert len(complaints(with_line(ARM, "  toy: {}\n  b: {extends: toy}"))) == 1
    text = with_line(ARM, ARM + "\n  b: {engine: remote, url: x}").replace("{id: tiny}", "{id: tiny, layrs: 2}")
    assert complaints(text) == ["2: model.layrs: unknown field; did you mean 'layers'?"]
    text = with_line(WORDS, "  words: {kind: words}\n  more: {extends: words, requests: 8}")
    assert [line.partition(": needs")[0] for line in complaints(text)] == ["6: workloads.words"] * 3


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"gone\.llmperf\.yaml:1: cannot be read: No such file"):
        suitefile.load_suite(tmp_path / "gone.llmperf.yaml", overrides={}, environ={})
    path = tmp_path / "latin.llmperf.yaml"
    path.write_bytes(b"suite: chat\nwhy: caf\xe9\n")
    with pytest.raises(SuiteError, match=r"latin\.llmperf\.yaml:2: not UTF-8 text"):
        suitefile.load_suite(path, overrides={}, environ={})


def test_credentials_in_a_url_are_not_printed(complaints: Complaints) -> None:
    [found] = complaints(with_line(ARM, "  toy: {engine: toy, threads: 'http://user:secret@host/x'}"))
    assert found == "4: engines.toy.threads: 'http://***@host/x' must be a whole number"


def test_a_byte_order_mark_and_windows_line_ends_are_fine(load: Callable[[str], Suite]) -> None:
    assert load("\ufeff" + BASE.replace("\n", "\r\n")).name == "chat"
