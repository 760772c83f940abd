import json

import pytest

from pytest_llmperf.clock import CLOCK
from pytest_llmperf.errors import StartError
from pytest_llmperf.pipeline.readiness import Climb, exit_description
from tests.unit.pipeline.stub_server import COMPLETION, MODELS, SILENCE, TRICKLE, Reply, Stub, stub


def climb(
    server: Stub,
    *,
    start_timeout_s: float = 20,
    generation_timeout_s: float = 20,
    api_key_env: str | None = None,
    addresses: tuple[str | None, ...] = (),
    codes: tuple[int | None, ...] = (),
) -> str:
    said, ended = list(addresses), list(codes)
    return Climb(
        address=lambda: said.pop(0) if said else server.url,
        exit_code=lambda: ended.pop(0) if ended else None,
        model="m",
        api_key_env=api_key_env,
        start_timeout_s=start_timeout_s,
        generation_timeout_s=generation_timeout_s,
        clock=CLOCK,
    ).wait()


def failure(server: Stub, **options: float) -> StartError:
    with pytest.raises(StartError) as caught:
        climb(server, **options)  # type: ignore[arg-type]
    return caught.value


def paths(server: Stub) -> list[str]:
    return [path for path, _ in server.seen]


def test_a_ready_server_climbs_every_rung_once() -> None:
    with stub() as server:
        assert climb(server) == server.url
        assert paths(server) == ["/health", "/v1/models", "/v1/completions"]


def test_loading_is_waited_for_on_every_rung() -> None:
    with stub(
        health=[(503, {}), (502, {}), (200, {})],
        models=[(503, {}), MODELS],
        completions=[(503, {"error": "Loading model"}), COMPLETION],
    ) as server:
        assert climb(server, addresses=(None, None)) == server.url
        assert paths(server) == ["/health"] * 3 + ["/v1/models"] * 2 + ["/v1/completions"] * 2


def test_a_server_without_health_is_ready_when_its_models_are() -> None:
    with stub(health=[(404, {})]) as server:
        assert climb(server) == server.url


def test_a_server_without_a_model_list_is_ready_when_it_generates() -> None:
    with stub(models=[(404, {})]) as server:
        assert climb(server) == server.url


def test_a_server_with_neither_is_none() -> None:
    with stub(health=[(404, {})], models=[(404, {})]) as server:
        error = failure(server, start_timeout_s=0.3)
    assert error.message == "not ready within 0.3 s: GET /health says 404, and GET /v1/models does not work either"


def test_chat_will_do_where_there_are_no_completions() -> None:
    reply = {"choices": [{"message": {"content": "hydrogen"}}]}
    with stub(completions=[(404, {})], chat=[(200, reply)]) as server:
        assert climb(server) == server.url


def test_the_wrong_model_is_told_at_once_with_the_right_ones() -> None:
    with stub(models=[(200, {"data": [{"id": "a"}, {"id": "b"}]})]) as server:
        error = failure(server)
    assert error.message == "it serves no model 'm' but: a, b; model.id must be one"
    assert error.cause == "arguments"


def test_nobody_there_is_waited_for_and_no_longer() -> None:
    with stub() as server:
        server.url = "http://127.0.0.1:9"
        error = failure(server, start_timeout_s=0.3)
    assert error.message == "not ready within 0.3 s: nobody answers at http://127.0.0.1:9/health (Connection refused)"


def test_an_address_that_is_never_said() -> None:
    with stub() as server, pytest.raises(StartError, match=r"within 0\.2 s: it has not said where it listens"):
        climb(server, start_timeout_s=0.2, addresses=(None,) * 1000)


@pytest.mark.parametrize("reply", [SILENCE, TRICKLE])
def test_health_and_then_nothing_is_a_stall_after_the_generation_timeout(reply: tuple[int, None]) -> None:
    with stub(completions=[reply]) as server:
        error = failure(server, generation_timeout_s=0.4)
    assert error.message == "GET /health was fine, and the first completion got no answer within 0.4 s"
    assert error.cause == "stall"


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {"error": {"message": "engine died"}}),
        (200, {"choices": [{"text": ""}], "usage": {"completion_tokens": 0}}),
        (200, {"choices": []}),
        (200, ["nonsense"]),
        (200, {"choices": {"a": 1}}),
        (200, {"choices": [None]}),
        (200, {"choices": [{"message": "a"}]}),
        (200, {"choices": [{"text": ""}], "usage": "none"}),
        (200, {"choices": [{"text": "a"}], "usage": {"completion_tokens": -3}}),
        (200, {"choices": [{"text": "a"}], "usage": {"completion_tokens": "many"}}),
        (400, {"error": {"message": "unknown field"}}),
        (500, {"error": {"message": "EngineDeadError"}}),
    ],
)
def test_an_answer_without_a_token_is_no_readiness(status: int, body: object) -> None:
    with stub(completions=[(status, body)]) as server:
        error = failure(server)
    assert error.message == f"the first completion got {status} and no token"
    assert error.evidence
    assert paths(server).count("/v1/completions") == 1


def test_the_key_of_the_environment_goes_along_and_appears_in_no_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_KEY", "sk-123")
    with stub() as server:
        climb(server, api_key_env="SOME_KEY")
        assert {key for _, key in server.seen} == {"Bearer sk-123"}
    with stub(models=[(401, {})]) as server, pytest.raises(StartError) as caught:
        climb(server, api_key_env="SOME_KEY")
    assert caught.value.message == "it answers 401 with the key in SOME_KEY"
    assert "sk-123" not in caught.value.describe()


def test_a_missing_key_says_how_to_give_one() -> None:
    with stub(health=[(401, {})], models=[(401, {})]) as server:
        assert failure(server).message == "it answers 401 without a key; name one with api_key_env"


def test_a_proxy_of_the_environment_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    with stub() as server:
        assert climb(server, start_timeout_s=5) == server.url


def test_a_dead_process_is_not_waited_for() -> None:
    with stub(health=[(503, {})]) as server, pytest.raises(StartError, match="exited with code 1 before it was ready"):
        climb(server, codes=(None, 1))


def test_somebody_else_on_the_port_does_not_make_a_dead_engine_ready() -> None:
    with stub() as server, pytest.raises(StartError, match="was ended by SIGKILL before it was ready"):
        climb(server, codes=(-9,))


def test_exit_codes_as_people_say_them() -> None:
    assert exit_description(0) == "exited with code 0"
    assert exit_description(-15) == "was ended by SIGTERM"
    assert exit_description(-99) == "was ended by signal 99"


def test_a_server_that_is_busy_for_ever_ends_the_start_by_the_generation_timeout() -> None:
    with stub(completions=[(503, {"error": "busy"})] * 200) as server:
        error = failure(server, start_timeout_s=60, generation_timeout_s=0.3)
    assert "not ready within 0.3 s: the first completion got 503" in error.message


@pytest.mark.parametrize("listing", [{"data": 5}, {"data": "abc"}, [1], "text", None])
def test_a_model_list_that_is_none_is_shown(listing: object) -> None:
    with stub(models=[(200, listing)]) as server:
        error = failure(server)
    assert error.message == "GET /v1/models says 200 and lists no models"
    assert error.evidence


def test_a_long_model_list_is_cut() -> None:
    with stub(models=[(200, {"data": [{"id": f"m{number}"} for number in range(50_000)]})]) as server:
        assert failure(server).message.endswith("m9 and 49990 more; model.id must be one")


@pytest.mark.parametrize("key", ["sk-123456", 'sk-"quoted"/\u20ac'.encode().decode("latin-1")])
@pytest.mark.parametrize("where", ["models", "completions", "redirect"])
def test_a_key_that_the_server_repeats_is_not_shown(monkeypatch: pytest.MonkeyPatch, key: str, where: str) -> None:
    monkeypatch.setenv("SOME_KEY", key)
    escaped = json.dumps(key)[1:-1]
    replies: dict[str, list[Reply]] = {
        "models": [(200, {"data": [{"id": f"for {key}"}]})] if where == "models" else [MODELS],
        "completions": [(400, {"error": f"bad key {key}"})],
        "health": [(302, {})] if where == "redirect" else [(200, {})],
    }
    with stub(location=f"/login?key={key}", **replies) as server, pytest.raises(StartError) as caught:
        climb(server, api_key_env="SOME_KEY")
    shown = caught.value.describe()
    assert "***" in shown
    assert key not in shown
    assert escaped not in shown


def test_a_redirect_ends_the_climb_and_says_where_it_leads() -> None:
    with stub(health=[(302, {})], location="https://login.example/") as server:
        error = failure(server)
    assert error.message == (
        f"{server.url}/health redirects to https://login.example/; name the URL of the server itself"
    )
    assert paths(server) == ["/health"]


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://name.invalid", "its host name cannot be resolved"),
        ("http://127.0.0.1:99999", "no valid URL"),
        ("https://127.0.0.1:PORT", "TLS failed"),
    ],
)
def test_a_url_that_leads_nowhere_is_told_at_once(url: str, why: str) -> None:
    with stub() as server:
        server.url = url.replace("PORT", server.url.rpartition(":")[2])
        error = failure(server, start_timeout_s=60)
    assert error.message.startswith(f"GET {server.url}/health: {why}")
    assert error.cause == "network"
