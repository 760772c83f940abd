from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.datasets import supply
from pytest_llmperf.datasets.entries import arrivals, conversations, prompts
from pytest_llmperf.errors import DataError, UnavailableError
from pytest_llmperf.model.case import Case
from pytest_llmperf.model.suite import Arm, DataFile, Hardware, Load, Model, Suite, Trace, Warmup, Workload
from pytest_llmperf.workload import Arrival

TOKENIZERS = Path(__file__).parents[2] / "data" / "tokenizers"
SHAREGPT = TOKENIZERS.parent / "workloads" / "sharegpt.json"

CUSTOM = Workload(name="mine", kind="custom", requests=2, output_tokens=8, data=DataFile(path="prompts.jsonl"))
TALKS = Workload(name="talks", kind="sharegpt", requests=2, rules="vllm-0.32.0", data=DataFile(path=str(SHAREGPT)))
IDS = Workload(name="ids", kind="token-ids", requests=2, input_tokens=4, output_tokens=8)
RANDOM = Workload(name="r", kind="random", requests=2, input_tokens=4, output_tokens=8, rules="vllm-0.32.0")

COUNT = "a whole number of at least 1 and at most 10000000"


def case(folder: Path, workload: Workload, model: Path | None = None) -> Case:
    arm = Arm(name="a", engine="toy", model=Model(id="m", path=None if model is None else str(model)))
    suite = Suite(
        name="s", why="", file=folder / "s.llmperf.yaml", arms={"a": arm}, workloads={}, gates=(), hardware=Hardware(),
        warmup=Warmup(), stall_timeout_s=1.0, request_timeout_s=1.0,
    )  # fmt: skip
    return Case(suite=suite, arm=arm, workload=workload, load=Load(kind="burst"), gates=())


def write(folder: Path, text: str) -> str:
    (folder / "prompts.jsonl").write_text(text)
    return hashlib.sha256(text.encode()).hexdigest()


GOOD = '{"prompt": "one"}\n\n{"prompt": "two", "output_tokens": 3, "more": 1}\n'


def test_a_file_beside_the_suite_and_its_content(tmp_path: Path) -> None:
    digest = write(tmp_path, GOOD)
    found = supply(case(tmp_path, CUSTOM))
    assert found.case.workload.data == DataFile(path="prompts.jsonl", sha256=digest)
    assert [(entry.prompt, entry.output_tokens) for entry in found.material.entries] == [("one", None), ("two", 3)]


def test_a_file_that_is_not_here_is_one_text_with_all_that_helps(tmp_path: Path) -> None:
    """sglang#5386, #14407: a data set that is downloaded although there is no network."""
    wanted = replace(TALKS, data=DataFile(path="/data/ShareGPT.json", sha256="ab" * 32))
    with pytest.raises(UnavailableError) as caught:
        supply(case(tmp_path, wanted))
    assert str(caught.value) == (
        "no file /data/ShareGPT.json, which path of workload 'talks' names. It is"
        " ShareGPT_V3_unfiltered_cleaned_split.json of the data set anon8231489123/ShareGPT_Vicuna_unfiltered on"
        " Hugging Face, 672,837,942 bytes, SHA-256 35f0e213ce091ed9b9af2a1f0755e9d39f9ccec34ab281cd4ca60d70f6479ba4;"
        f" nothing is downloaded here. The suite asks for SHA-256 {'ab' * 32}."
    )


def test_another_file_than_the_suite_names(tmp_path: Path) -> None:
    digest = write(tmp_path, GOOD)
    named = replace(CUSTOM, data=DataFile(path="prompts.jsonl", sha256=digest.upper()))
    assert supply(case(tmp_path, named)).case.workload.data == DataFile(path="prompts.jsonl", sha256=digest)
    other = replace(CUSTOM, data=DataFile(path="prompts.jsonl", sha256="ab" * 32))
    with pytest.raises(DataError, match=rf"its SHA-256 is {digest}, the suite says {'ab' * 32}"):
        supply(case(tmp_path, other))


def test_a_file_that_changed_is_read_again(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    first = supply(case(tmp_path, CUSTOM))
    write(tmp_path, GOOD.replace("one", "few"))
    os.utime(tmp_path / "prompts.jsonl", ns=(0, 1))
    assert supply(case(tmp_path, CUSTOM)).material.entries != first.material.entries


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "2: not JSON: "),
        ("[]", "2: not a JSON object"),
        ("{}", '2: needs either "prompt", a text, or "messages"'),
        ('{"prompt": ""}', '2: needs either "prompt"'),
        ('{"prompt": "x", "messages": []}', '2: needs either "prompt"'),
        ('{"messages": []}', '2: needs either "prompt"'),
        ('{"messages": [{"role": "user"}]}', '2: needs either "prompt"'),
        ('{"prompt": "x", "output_tokens": 0}', f"2: output_tokens: 0 must be {COUNT}"),
        ('{"prompt": "x", "output_tokens": "8"}', "2: output_tokens: '8' must be a whole number of at least 1"),
        ('{"prompt": "x", "output_tokens": true}', "2: output_tokens: True must be a whole number of at least 1"),
    ],
)
def test_a_malformed_line_is_named(line: str, message: str, tmp_path: Path) -> None:
    write(tmp_path, '{"prompt": "x"}\n' + line)
    with pytest.raises(DataError) as caught:
        supply(case(tmp_path, CUSTOM))
    assert str(caught.value).startswith(f"{tmp_path / 'prompts.jsonl'}:{message}")


def test_what_a_run_would_lack_is_said_before_anything_starts(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    with pytest.raises(DataError, match="2 of 2 prompts are fit, and requests: 3 asks for more"):
        supply(case(tmp_path, replace(CUSTOM, requests=3)))


WORDS = Workload(name="w", kind="words", requests=2, input_tokens=4, output_tokens=8)


def replayed(folder: Path) -> Case:
    load = Load(kind="trace", trace=Trace(data=DataFile(path="prompts.jsonl")))
    return replace(case(folder, WORDS), load=load)


def test_a_trace(tmp_path: Path) -> None:
    lines = ['{"timestamp": 27000, "input_length": 5, "hash_ids": [1]}', '{"timestamp": 27500.5, "output_length": 9}']
    digest = write(tmp_path, "\n".join(lines))
    found = supply(replayed(tmp_path))
    assert found.material.arrivals == (Arrival(at_s=0.0, input_tokens=5), Arrival(at_s=0.5005, output_tokens=9))
    assert found.case.load.trace == Trace(data=DataFile(path="prompts.jsonl", sha256=digest))


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ("{}", '2: needs "timestamp", in milliseconds'),
        ('{"timestamp": "9"}', '2: needs "timestamp", in milliseconds'),
        ('{"timestamp": 1}', "2: timestamp 1 is earlier than 2 on the line before; sort the trace"),
        (
            '{"timestamp": 3, "input_length": 0}',
            "2: input_length: 0 must be a whole number of at least 1 and at most 10000000",
        ),
    ],
)
def test_a_malformed_trace(second: str, message: str, tmp_path: Path) -> None:
    write(tmp_path, '{"timestamp": 2}\n' + second)
    with pytest.raises(DataError) as caught:
        supply(replayed(tmp_path))
    assert str(caught.value) == f"{tmp_path / 'prompts.jsonl'}:{message}"


def test_a_trace_that_is_too_short_or_not_here(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"which trace\.path of the load of workload 'w' names"):
        supply(replayed(tmp_path))
    write(tmp_path, '{"timestamp": 2}')
    with pytest.raises(DataError, match="the trace has 1 lines, requests: 2 asks for more"):
        supply(replayed(tmp_path))


@pytest.mark.parametrize("text", ["{", "{}", "5", "[1]", '[{"conversations": [1, 2]}]', '[{"conversations": 5}]'])
def test_no_sharegpt_file(text: str) -> None:
    with pytest.raises(DataError, match=r"^f\.json: not a ShareGPT file"):
        conversations(text.encode(), "f.json")


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_entries_or_one_error(content: bytes) -> None:
    for parse in (prompts, conversations, arrivals):
        with suppress(DataError):
            parse(content, "f")


def test_conversations_of_one_turn_are_left_out() -> None:
    talks: list[dict[str, Any]] = [
        {"conversations": [{"value": "a"}]}, {"id": "x"}, {"conversations": [{"value": "b"}, {"value": "c"}, {}]},
    ]  # fmt: skip
    [entry] = conversations(json.dumps(talks).encode(), "f")
    assert (entry.prompt, entry.answer) == ("b", "c")


def test_the_vocabulary_of_the_models_files(tmp_path: Path) -> None:
    found = supply(case(tmp_path, IDS, TOKENIZERS / "bytelevel")).material.vocabulary
    assert found is not None
    assert found.size == 600
    assert sorted(found.special) == [0, 1, 2, 600, 601], "the last two were added to it"
    assert len(found.plain) == 597


def test_the_vocabulary_of_a_config_alone(tmp_path: Path) -> None:
    shutil.copy(TOKENIZERS / "bytelevel" / "config.json", tmp_path)
    found = supply(case(tmp_path, IDS, tmp_path)).material.vocabulary
    assert found is not None
    assert (found.size, sorted(found.special)) == (640, [0, 1])


@pytest.mark.parametrize(
    ("config", "size"), [({"text_config": {"vocab_size": 9}}, 9), ({"vocab_size": 8, "eos_token_id": None}, 8)]
)
def test_other_configs(config: dict[str, Any], size: int, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(config))
    found = supply(case(tmp_path, IDS, tmp_path)).material.vocabulary
    assert found is not None
    assert (found.size, found.special) == (size, frozenset())


def test_a_vocabulary_that_the_suite_says(tmp_path: Path) -> None:
    said = replace(IDS, vocab=100)
    for model, special in ((None, 0), (tmp_path / "not here", 0), (TOKENIZERS / "wordpiece", 5)):
        found = supply(case(tmp_path, said, model)).material.vocabulary
        assert found is not None
        assert (found.size, len(found.special)) == (100, special)


@pytest.mark.parametrize(
    ("workload", "model", "message"),
    [
        (IDS, None, "workload 'ids' of kind token-ids needs the model's tokenizer files: the suite gives no folder"),
        (RANDOM, Path("/not/here"), "workload 'r' of kind random needs the model's tokenizer files: no folder /not"),
        (IDS, SHAREGPT.parent, f"no tokenizer.json and no config.json in {SHAREGPT.parent} (model.path)"),
        (RANDOM, SHAREGPT.parent, f"no file {SHAREGPT.parent / 'tokenizer.json'}: model.path must be the folder"),
    ],
)  # fmt: skip
def test_files_of_the_model_that_are_not_here(
    workload: Workload, model: Path | None, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UnavailableError) as caught:
        supply(case(tmp_path, workload, model))
    assert str(caught.value).startswith(message)


def test_the_package_that_reads_tokenizers_is_an_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(TOKENIZERS / "bytelevel", tmp_path / "m")
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UnavailableError, match=r"pip install 'pytest-llmperf\[datasets\]'"):
        supply(case(tmp_path, RANDOM, tmp_path / "m"))
    assert supply(case(tmp_path, IDS, tmp_path / "m")).material.vocabulary is not None, "token ids need no package"


@pytest.mark.parametrize("text", ["{", "[]", '{"version": "1.0"}'])
def test_a_broken_tokenizer_is_an_error_that_names_it(text: str, tmp_path: Path) -> None:
    pytest.importorskip("tokenizers")
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(DataError, match=str(tmp_path / "tokenizer.json")):
        supply(case(tmp_path, RANDOM, tmp_path))


def test_nothing_here_asks_the_network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """sglang#5386, #14407: the same, with everything that is needed, and with nothing of it."""

    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("the network was asked")

    for name in ("connect", "connect_ex"):
        monkeypatch.setattr(f"socket.socket.{name}", refuse)
    for name in ("getaddrinfo", "create_connection"):
        monkeypatch.setattr(f"socket.{name}", refuse)
    write(tmp_path, GOOD)
    model = TOKENIZERS / "bytelevel"
    for wanted in (CUSTOM, TALKS, IDS, RANDOM):
        assert supply(case(tmp_path, wanted, model)).material
    for wanted in (
        replace(CUSTOM, data=DataFile(path="gone")),
        replace(TALKS, data=DataFile(path="gone")),
        IDS,
        RANDOM,
    ):
        with pytest.raises(UnavailableError):
            supply(case(tmp_path, wanted, None))
