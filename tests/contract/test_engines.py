"""What every registered engine keeps to. A new engine adds one line to ``SAMPLES``."""

import inspect
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
import requests
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pytest_llmperf import registry
from pytest_llmperf.clock import CLOCK
from pytest_llmperf.engines.base import CAUSES, Engine, EngineOptions
from pytest_llmperf.engines.tiny_vocab import REPLY
from pytest_llmperf.launchers import family
from pytest_llmperf.model.acceptance import Acceptance
from pytest_llmperf.model.suite import Arm, Model
from pytest_llmperf.pipeline.servers import Server, ServerPool, server_key, start

TINY = Model(id="tiny", weights="synthetic")
EMBEDDED = Arm(name="embedded", engine="embedded", model=TINY, options={"speculative_tokens": 3}, start_timeout_s=60)
SAMPLES = {
    "embedded": EMBEDDED,
    "external": Arm(name="external", engine="external", model=TINY, options={"url": "http://127.0.0.1:9"}),
}

METHODS = [name for name, _ in inspect.getmembers(Engine, inspect.isfunction) if not name.startswith("_")]

every_engine = pytest.mark.parametrize("name", registry.names("engine"))


def engine_of(name: str) -> Engine:
    engine: Engine = registry.load("engine", name)()
    return engine


# The description, without a server


@every_engine
def test_it_is_in_this_suite(name: str) -> None:
    assert name in SAMPLES


@every_engine
@pytest.mark.parametrize("method", METHODS)
def test_its_methods_take_what_the_contract_says(name: str, method: str) -> None:
    wanted = inspect.signature(getattr(Engine, method))
    assert inspect.signature(getattr(engine_of(name), method)).parameters.keys() == wanted.parameters.keys() - {"self"}


@every_engine
@pytest.mark.parametrize("kind", ["Options", "Shape"])
def test_its_options_are_strict(name: str, kind: str) -> None:
    options: type[EngineOptions] = getattr(engine_of(name), kind)
    assert issubclass(options, EngineOptions)
    assert set(options.model_fields) >= options.VARIABLE_FIELDS
    with pytest.raises(ValidationError):
        options.model_validate({**SAMPLES[name].options, "no_such_option": 1})


@every_engine
def test_what_it_would_run_can_be_shown_without_running_or_writing(name: str, tmp_path: Path) -> None:
    engine, arm, folder = engine_of(name), SAMPLES[name], tmp_path / "not made"
    command = engine.command(arm, folder)
    assert command == engine.command(arm, folder)
    assert not folder.exists()
    if command is None:
        assert engine.address(arm, folder)
    else:
        assert all(isinstance(word, str) for word in command.argv)
        assert engine.address(arm, folder) is None


@every_engine
@given(loss=st.floats(0.001, 20))
def test_a_loss_of_acceptance_is_another_arm_or_none(name: str, loss: float) -> None:
    engine, arm = engine_of(name), SAMPLES[name]
    harmed = engine.with_less_acceptance(arm, loss)
    assert harmed is None or (server_key(harmed) != server_key(arm) and harmed.name == arm.name)


def test_the_embedded_engine_loses_at_least_what_is_asked() -> None:
    engine = engine_of("embedded")
    slight, half = (engine.with_less_acceptance(EMBEDDED, loss) for loss in (0.06, 2.0))
    assert slight is not None
    assert half is not None
    assert 0 < slight.model.shape["mtp_damage"] < half.model.shape["mtp_damage"] < 1
    assert engine.with_less_acceptance(EMBEDDED, 3.5) is None, "three drafts cannot lose more than three tokens"
    assert engine.with_less_acceptance(replace(EMBEDDED, options={}), 0.1) is None, "nothing is drafted"


@every_engine
def test_its_identity_is_text_with_a_name_and_no_secret(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "sk-123")
    identity = engine_of(name).identity(SAMPLES[name])
    assert identity["engine"]
    assert all(isinstance(key, str) and isinstance(value, str) for key, value in identity.items())
    assert "sk-123" not in str(identity)


@every_engine
@given(log=st.text())
def test_its_causes_are_of_the_closed_list(name: str, log: str) -> None:
    assert engine_of(name).classify(log) in {None, *CAUSES}


@every_engine
def test_unknown_counters_are_no_acceptance(name: str) -> None:
    assert engine_of(name).acceptance(SAMPLES[name], {}, {"other_total": 1.0}) is None


@every_engine
def test_a_server_that_has_no_page_is_no_mapping_of_wrong_types(name: str) -> None:
    said = engine_of(name).in_effect(SAMPLES[name], lambda _: None)
    assert said is None or all(isinstance(key, str) and isinstance(value, str) for key, value in said.items())


# A running server


@pytest.fixture(scope="module")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerPool]:
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    pool = ServerPool(tmp_path_factory.mktemp("servers"))
    yield pool
    pool.close()
    patch.undo()


@pytest.fixture(params=registry.names("engine"))
def server(request: pytest.FixtureRequest, pool: ServerPool) -> Server:
    """A ready server of every engine; the external one is the embedded one, attached to."""
    arm = SAMPLES[request.param]
    if arm.engine == "external":
        arm = replace(arm, options={"url": pool.get(EMBEDDED).endpoint.url + "/v1"})
    return pool.get(arm)


def complete(server: Server, prompt: str, tokens: int, path: str = "/v1/completions") -> dict[str, object]:
    body = {"model": server.endpoint.model, "max_tokens": tokens, "temperature": 0}
    ask = {"messages": [{"role": "user", "content": prompt}]} if "chat" in path else {"prompt": prompt}
    answer = requests.post(server.endpoint.url + path, json=body | ask, timeout=60)
    answer.raise_for_status()
    found: dict[str, object] = answer.json()
    return found


def acceptance_of(server: Server, prompts: list[str], concurrency: int, tokens: int = 128) -> Acceptance:
    engine = engine_of(server.arm.engine)
    before = server.counters()
    with ThreadPoolExecutor(concurrency) as workers:
        list(workers.map(lambda prompt: complete(server, prompt, tokens), prompts))
    after = server.counters()
    assert before is not None
    assert after is not None
    found = engine.acceptance(server.arm, before, after)
    assert found is not None
    return found


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
def test_it_answers_both_apis_with_as_many_tokens_as_asked(server: Server, path: str) -> None:
    assert complete(server, "the of and", 7, path)["usage"]["completion_tokens"] == 7  # type: ignore[index]


def test_it_says_what_is_in_effect(server: Server) -> None:
    said = engine_of(server.arm.engine).in_effect(server.arm, server.ask)
    assert said is not None
    assert said["total_slots"] == "4"
    assert said["default_generation_settings.n_ctx"] == "4096"
    assert all(isinstance(key, str) and isinstance(value, str) for key, value in said.items())


def test_its_counters_give_an_acceptance(server: Server) -> None:
    found = acceptance_of(server, ["the of and"], 1, tokens=16)
    assert 0 < found.accepted <= found.drafted
    assert sum(found.per_position) == found.accepted


# The embedded engine's promises


def text_of(answer: dict[str, object]) -> str:
    return str(answer["choices"][0]["text"])  # type: ignore[index]


def reply(tokens: int) -> str:
    return "".join(f" {REPLY[i % len(REPLY)]}" for i in range(tokens))


def damaged(share: float) -> Arm:
    return replace(EMBEDDED, name="damaged", model=replace(TINY, shape={"mtp_damage": share}))


@pytest.mark.parametrize(
    "arm",
    [
        EMBEDDED,
        damaged(0.3),
        damaged(1.0),
        replace(EMBEDDED, options={}),
        replace(EMBEDDED, model=replace(TINY, shape={"layers": 16})),
        replace(EMBEDDED, model=replace(TINY, shape={"layers": 1, "width": 96})),
    ],
    ids=["healthy", "damaged", "all damaged", "no speculation", "deep", "wide"],
)
@pytest.mark.parametrize("prompt", ["the", "of which there was no time", "Größe: 12 €"])
def test_the_text_is_the_same_whatever_the_prompt_the_shape_and_the_damage(
    pool: ServerPool, arm: Arm, prompt: str
) -> None:
    assert text_of(complete(pool.get(arm), prompt, 120)) == reply(120)


@pytest.mark.parametrize(
    ("share", "expected"),
    [
        (0.0, Acceptance(steps=32, accepted=95, drafted=95, per_position=(32, 32, 31))),
        (0.3, Acceptance(steps=38, accepted=89, drafted=113, per_position=(38, 38, 13))),
    ],
)
@pytest.mark.parametrize("concurrency", [1, 4, 8])
def test_acceptance_is_exact_at_any_concurrency(
    pool: ServerPool, share: float, expected: Acceptance, concurrency: int
) -> None:
    prompts = [f"{'the ' * n}of and {concurrency}" for n in range(8)]
    found = acceptance_of(pool.get(damaged(share)), prompts, concurrency)
    assert found == Acceptance(
        steps=8 * expected.steps,
        accepted=8 * expected.accepted,
        drafted=8 * expected.drafted,
        per_position=tuple(8 * count for count in expected.per_position),
    )


def test_without_speculation_there_is_no_acceptance(pool: ServerPool) -> None:
    server = pool.get(replace(EMBEDDED, options={}))
    complete(server, "the", 8)
    counters = server.counters()
    assert counters is not None
    assert engine_of("embedded").acceptance(server.arm, {}, counters) is None


def test_words_are_tokens_and_a_repeated_prompt_costs_what_a_new_one_does(pool: ServerPool) -> None:
    prompt = "the of and to in a is that it was " * 6 + "for on are as"
    for _ in range(2):
        usage = complete(pool.get(EMBEDDED), prompt, 4)["usage"]
        assert usage["prompt_tokens"] == 64  # type: ignore[index]
        assert usage["prompt_tokens_details"]["cached_tokens"] == 0  # type: ignore[index]


def test_more_streams_than_slots_wait_for_one(pool: ServerPool) -> None:
    server = pool.get(EMBEDDED)
    with ThreadPoolExecutor(16) as workers:
        texts = set(workers.map(lambda _: text_of(complete(server, "the", 32)), range(16)))
    assert texts == {reply(32)}


def wait_until_gone(session: int) -> None:
    deadline = CLOCK.monotonic_ns() + 10e9
    while family.members(session, "no mark"):
        assert CLOCK.monotonic_ns() < deadline
        CLOCK.sleep(0.02)


def test_it_ends_with_its_starter_even_when_that_is_killed(tmp_path: Path) -> None:
    code = f"""
import os, signal
from pathlib import Path
from tests.contract.test_engines import EMBEDDED
from pytest_llmperf.pipeline.servers import start
print(start(EMBEDDED, Path({str(tmp_path)!r})).process.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    root = Path(__file__).parents[2]
    environment = os.environ | {"PYTHONPATH": str(root), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert re.fullmatch(r"\d+\n", done.stdout)
    wait_until_gone(int(done.stdout))


def test_it_ends_on_sigterm_with_streams_open(pool: ServerPool, tmp_path: Path) -> None:
    server = start(replace(EMBEDDED, options={"context": 32768}), tmp_path)
    assert server.process is not None
    body = {"model": "tiny", "prompt": "the", "max_tokens": 30000, "stream": True}
    with requests.post(f"{server.endpoint.url}/v1/completions", json=body, stream=True, timeout=60) as stream:
        assert next(stream.iter_lines()).startswith(b"data: ")
        report = server.process.stop(10)
    assert (report.returncode, report.killed, report.leftovers) == (-signal.SIGTERM, (), ())
