import os
import signal
import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
import requests

from pytest_llmperf.clock import CLOCK, SystemClock
from pytest_llmperf.engines import model_cache
from pytest_llmperf.engines.tiny_model import Shape
from pytest_llmperf.errors import DeathError, StartError, UnavailableError, UsageError
from pytest_llmperf.launchers import family
from pytest_llmperf.launchers.base import StopReport
from pytest_llmperf.launchers.local import LocalProcess
from pytest_llmperf.model.suite import Arm, Model
from pytest_llmperf.pipeline.servers import HUNG_GRACE_S, Server, ServerPool, server_key, start
from tests.unit.pipeline.stub_server import SILENCE, stub

ARM = Arm(
    name="healthy",
    engine="embedded",
    model=Model(id="tiny", weights="synthetic"),
    options={"speculative_tokens": 3},
    start_timeout_s=60,
)


@pytest.fixture(autouse=True)
def _cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.getbasetemp() / "cache"))


@pytest.fixture
def pool(tmp_path: Path) -> Iterator[ServerPool]:
    pool = ServerPool(tmp_path)
    yield pool
    pool.close()


def pid_of(server: Server) -> int:
    assert server.process is not None
    return server.process.pid


def gone(pid: int) -> bool:
    return not family.members(pid, "no mark")


def attached(url: str, model: str = "m", **changes: object) -> Arm:
    options = {"url": url} | changes
    return Arm(name="theirs", engine="external", model=Model(id=model), options=options, start_timeout_s=20)


# Keys


def test_a_key_knows_what_runs_and_not_its_name() -> None:
    assert server_key(replace(ARM, name="other", variant_of="healthy", default=False)) == server_key(ARM)
    assert server_key(replace(ARM, options={"speculative_tokens": 3, "threads": 1})) == server_key(ARM)


@pytest.mark.parametrize(
    "change",
    [
        {"options": {"speculative_tokens": 2}},
        {"args": ("--x",)},
        {"env": {"A": "1"}},
        {"model": Model(id="tiny", weights="synthetic", shape={"layers": 3})},
        {"model": Model(id="other", weights="synthetic")},
    ],
)
def test_whatever_changes_the_server_changes_its_key(change: dict[str, object]) -> None:
    assert server_key(replace(ARM, **change)) != server_key(ARM)  # type: ignore[arg-type]


# The pool


def test_a_running_server_is_shared_and_a_second_instance_is_another(pool: ServerPool) -> None:
    first = pool.get(ARM)
    assert pool.get(replace(ARM, name="alias")).session == first.session
    assert pool.get(replace(ARM, name="alias")).arm.name == "alias"
    assert pool.get(ARM, "reference").session != first.session
    pool.close()
    assert gone(pid_of(first))


def test_a_restart_is_a_new_session(pool: ServerPool) -> None:
    first = pool.get(ARM)
    second = pool.restart(ARM)
    assert first.session != second.session
    assert gone(pid_of(first))
    assert second.alive()


def test_a_server_that_died_while_idle_is_a_failure_and_then_replaced(pool: ServerPool) -> None:
    first = pool.get(ARM)
    os.kill(pid_of(first), signal.SIGKILL)
    os.waitid(os.P_PID, pid_of(first), os.WEXITED | os.WNOWAIT)
    with pytest.raises(DeathError, match="was ended by SIGKILL while nothing was asked of it"):
        pool.get(ARM)
    second = pool.get(ARM)
    assert second.session != first.session
    assert second.alive()


def test_only_servers_that_are_needed_stay(pool: ServerPool) -> None:
    other = replace(ARM, options={})
    first, second = pool.get(ARM), pool.get(other)
    pool.keep([replace(other, name="renamed")])
    assert gone(pid_of(first))
    assert second.alive()
    pool.discard(other)
    assert gone(pid_of(second))


def test_a_log_can_be_read_from_where_a_run_began(pool: ServerPool) -> None:
    server = pool.get(ARM)
    begin = server.log_size()
    assert begin > 0
    assert server.log is not None
    with server.log.open("ab") as log:
        log.write(b"later\n")
    assert server.log_since(begin).endswith(b"later\n")
    assert server.tail(1) == "later"


# Failing starts


def failure(arm: Arm, folder: Path, **options: float) -> StartError:
    with pytest.raises(StartError) as caught:
        start(arm, folder, **options)  # type: ignore[arg-type]
    return caught.value


def test_a_truncated_model_file_fails_with_the_engines_own_words(tmp_path: Path) -> None:
    whole = model_cache.ensure(Shape()).read_bytes()
    (tmp_path / "half.gguf").write_bytes(whole[: len(whole) // 2])
    error = failure(replace(ARM, model=Model(id="tiny", path=str(tmp_path / "half.gguf"))), tmp_path)
    assert error.message == "healthy: the engine exited with code 1 before it was ready"
    assert error.cause == "weights"
    assert "model is corrupted or incomplete" in error.evidence
    assert len(error.evidence.splitlines()) <= 20
    assert error.log is not None
    assert error.log.is_file()


def test_a_port_that_is_taken_names_its_holder(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        error = failure(replace(ARM, options={"port": port}), tmp_path)
    assert error.cause == "port"
    assert f"port {port} is held by pid {os.getpid()} (" in error.message


def test_a_port_taken_by_an_equal_engine_is_taken_too(tmp_path: Path, pool: ServerPool) -> None:
    other = pool.get(ARM)
    port = int(other.endpoint.url.rpartition(":")[2])
    error = failure(replace(ARM, options={"port": port}), tmp_path)
    assert error.cause == "port"
    assert f"held by pid {pid_of(other)}" in error.message


def test_a_free_port_of_ones_choice_is_used(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = start(replace(ARM, options={"port": port}), tmp_path)
    assert server.endpoint.url == f"http://127.0.0.1:{port}"
    server.stop()


def test_an_argument_that_the_engine_does_not_know(tmp_path: Path) -> None:
    error = failure(replace(ARM, args=("--nonsense", "1")), tmp_path)
    assert error.cause == "arguments"
    assert "unrecognized arguments: --nonsense" in error.evidence


def test_an_engine_that_is_not_here_is_unavailable(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match=r"healthy: model\.path: no file /nowhere"):
        start(replace(ARM, model=Model(id="tiny", path="/nowhere")), tmp_path)


@dataclass
class Stopping(SystemClock):
    """Stops the engine in the first wait of a start, as a debugger would."""

    mark: str

    def sleep(self, seconds: float) -> None:
        for pid in family.members(-1, self.mark):
            os.kill(pid, signal.SIGSTOP)
        super().sleep(seconds)


@pytest.fixture
def graces(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The grace of every stop."""
    seen: list[float] = []
    stop = LocalProcess.stop

    def noted(process: LocalProcess, grace_s: float) -> StopReport:
        seen.append(grace_s)
        return stop(process, grace_s)

    monkeypatch.setattr(LocalProcess, "stop", noted)
    return seen


def test_an_engine_that_is_stopped_is_said_to_be_and_gets_a_short_grace(tmp_path: Path, graces: list[float]) -> None:
    arm = replace(ARM, env={"MARK_OF_TEST": "stopped"}, start_timeout_s=1)
    with pytest.raises(StartError, match=r"its process is stopped \(state T\)"):
        start(arm, tmp_path, Stopping("MARK_OF_TEST=stopped"))
    assert graces[0] == HUNG_GRACE_S
    assert not family.members(-1, "MARK_OF_TEST=stopped")


def test_a_grace_may_be_shorter_for_what_hung(pool: ServerPool, graces: list[float]) -> None:
    server = pool.get(ARM)
    os.kill(pid_of(server), signal.SIGSTOP)
    pool.discard(ARM, HUNG_GRACE_S)
    assert graces == [HUNG_GRACE_S]
    assert gone(pid_of(server))


@dataclass
class Interrupted(SystemClock):
    """Interrupted in the first wait of a start, as by Ctrl-C."""

    inside: Callable[[], None]

    def sleep(self, seconds: float) -> None:
        self.inside()
        raise KeyboardInterrupt


def test_an_interrupt_leaves_nothing(tmp_path: Path) -> None:
    running: list[int] = []

    def look() -> None:
        running.extend(family.members(-1, "MARK_OF_TEST=interrupt"))

    with pytest.raises(KeyboardInterrupt):
        start(replace(ARM, env={"MARK_OF_TEST": "interrupt"}), tmp_path, Interrupted(look))
    assert running
    assert not family.members(-1, "MARK_OF_TEST=interrupt")


# Somebody else's server


def test_a_server_of_somebody_else_is_used_and_left_running(pool: ServerPool) -> None:
    with stub() as theirs:
        server = pool.get(attached(theirs.url))
        assert server.endpoint.url == theirs.url
        assert server.alive()
        assert not pool.can_restart(server.arm)
        assert pool.can_restart(ARM)
        assert (server.log, server.tail(), server.log_since(0)) == (None, "", b"")
        pool.close()
        assert requests.get(f"{theirs.url}/health", timeout=5).status_code == 200


def test_a_server_of_somebody_else_that_hangs_ends_the_start_in_time(tmp_path: Path) -> None:
    with stub(completions=[SILENCE]) as theirs:
        begun = CLOCK.monotonic_ns()
        error = failure(attached(theirs.url), tmp_path, generation_timeout_s=0.3)
        assert CLOCK.monotonic_ns() - begun < 15e9
    assert (error.cause, error.log) == ("stall", None)
    assert error.message.startswith("theirs: GET /health was fine")


def test_nobody_at_the_url_is_a_network_failure(tmp_path: Path) -> None:
    arm = replace(attached("http://127.0.0.1:9"), start_timeout_s=0.2)
    assert failure(arm, tmp_path).cause == "network"


def test_arguments_for_a_server_that_is_not_ours_are_a_mistake(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="args and env have no effect"):
        start(replace(attached("http://127.0.0.1:9"), args=("--x",)), tmp_path)
