import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_llmperf.clock import CLOCK
from pytest_llmperf.errors import StartError
from pytest_llmperf.launchers import family
from pytest_llmperf.launchers.local import LocalLauncher, LocalProcess
from pytest_llmperf.model.command import Command

Launch = Callable[..., LocalProcess]
BOUND_S = 10.0


@pytest.fixture
def launch(tmp_path: Path) -> Iterator[Launch]:
    started: list[LocalProcess] = []

    def start(code: str, **env: str) -> LocalProcess:
        command = Command(argv=(sys.executable, "-c", code), env=env)
        started.append(LocalLauncher().launch(command, folder=tmp_path, run_id=f"run-{tmp_path.name}-{len(started)}"))
        return started[-1]

    yield start
    for process in started:
        process.stop(0)


def wait_for(condition: Callable[[], object]) -> None:
    deadline = CLOCK.monotonic_ns() + BOUND_S * 1e9
    while not condition():
        assert CLOCK.monotonic_ns() < deadline
        CLOCK.sleep(0.01)


def said(process: LocalProcess, text: str) -> None:
    wait_for(lambda: text in process.tail(1000))


def test_output_goes_to_the_log_and_its_tail_can_be_read(launch: Launch) -> None:
    process = launch("import sys; [print(i) for i in range(100)]; sys.stdout.flush(); print('end', file=sys.stderr)")
    said(process, "end")
    assert process.tail(3).splitlines() == ["98", "99", "end"]
    assert process.log.name == "engine.log"


def test_an_exit_code_stays_readable_until_and_after_the_stop(launch: Launch) -> None:
    process = launch("raise SystemExit(3)")
    wait_for(lambda: process.poll() is not None)
    assert (process.poll(), process.poll()) == (3, 3)
    assert process.stop(1).returncode == 3
    assert process.poll() == 3


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_a_process_and_what_it_starts_keep_to_the_commands_cores(tmp_path: Path) -> None:
    own = os.sched_getaffinity(0)
    ask = "import os, subprocess, sys; print(os.sched_getaffinity(0), flush=True); sys.argv[1:] and subprocess.run("
    code = ask + "[sys.executable, '-c', sys.argv[1]])"
    command = Command(argv=(sys.executable, "-c", code, code), cores=(max(own),))
    process = LocalLauncher().launch(command, folder=tmp_path, run_id=f"run-{tmp_path.name}")
    wait_for(lambda: process.poll() is not None)
    process.stop(0)
    assert process.tail(2).splitlines() == [str({max(own)})] * 2
    assert os.sched_getaffinity(0) == own


def test_a_signal_is_a_negative_exit_code(launch: Launch) -> None:
    process = launch("import os; os.kill(os.getpid(), 9)")
    wait_for(lambda: process.poll() is not None)
    assert process.poll() == -signal.SIGKILL


def test_a_polite_process_is_asked_and_not_killed(launch: Launch) -> None:
    process = launch("print('up', flush=True); import time; time.sleep(60)")
    said(process, "up")
    report = process.stop(BOUND_S)
    assert (report.returncode, report.killed, report.leftovers) == (-signal.SIGTERM, (), ())
    assert process.stop(BOUND_S) is report


TIDY = """
import signal, sys, time
def end(*_):
    print('tidied', flush=True)
    sys.exit(7)
signal.signal(signal.SIGTERM, end)
print('up', flush=True)
time.sleep(60)
"""


def test_a_stopped_process_is_known_and_can_still_end_by_itself(launch: Launch) -> None:
    process = launch(TIDY)
    said(process, "up")
    os.kill(process.pid, signal.SIGSTOP)
    wait_for(lambda: process.state() == "T")
    report = process.stop(BOUND_S)
    assert (report.returncode, report.killed) == (7, ())
    assert "tidied" in process.tail(10)
    assert process.state() == ""


def test_a_process_ends_also_where_sigchld_is_ignored(launch: Launch) -> None:
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        process = launch("print('up', flush=True); import sys; sys.exit(3)")
        wait_for(lambda: process.poll() is not None)
        assert process.poll() == 0  # the kernel keeps no code
        assert process.stop(1).leftovers == ()
        running = launch("print('up', flush=True); import time; time.sleep(60)")
        said(running, "up")
        assert running.poll() is None
        assert running.stop(BOUND_S).killed == ()
    finally:
        signal.signal(signal.SIGCHLD, before)


STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"


def test_a_process_that_ignores_sigterm_is_killed(launch: Launch) -> None:
    process = launch(STUBBORN)
    said(process, "up")
    report = process.stop(0.1)
    assert (report.returncode, report.killed, report.leftovers) == (-signal.SIGKILL, (process.pid,), ())


FAMILY = """
import os, subprocess, sys, time
child = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
same = subprocess.Popen([sys.executable, '-c', child])
own_session = subprocess.Popen([sys.executable, '-c', child], start_new_session=True)
unmarked = subprocess.Popen([sys.executable, '-c', child], env={})
print('family', same.pid, own_session.pid, unmarked.pid, flush=True)
time.sleep(60)
"""


def pids(process: LocalProcess) -> set[int]:
    wait_for(lambda: process.tail(10).count("up") == 3 and "family" in process.tail(10))
    line = next(line for line in process.tail(10).splitlines() if line.startswith("family"))
    return {int(word) for word in line.split()[1:]}


@pytest.mark.parametrize("leader", ["stopped", "killed before"])
def test_children_in_the_session_and_marked_ones_outside_of_it_go_too(launch: Launch, leader: str) -> None:
    process = launch(FAMILY)
    children = pids(process)
    if leader == "killed before":
        os.kill(process.pid, signal.SIGKILL)
        wait_for(lambda: process.poll() is not None)
    report = process.stop(0.2)
    assert set(report.killed) == children
    assert report.leftovers == ()
    # Killed orphans are zombies until their new parent collects them.
    assert not family.members(process.pid, f"LLMPERF_RUN_ID=run-{process.log.parent.name}-0")


def test_a_stranger_is_not_of_the_family(launch: Launch) -> None:
    stranger = launch(STUBBORN)
    said(stranger, "up")
    other = launch("print('other', flush=True); import time; time.sleep(60)")
    said(other, "other")
    other.stop(1)
    assert stranger.poll() is None
    assert not family.kill(stranger.pid, other.pid, "LLMPERF_RUN_ID=another")
    assert stranger.poll() is None


def test_variables_are_added_to_the_inherited_ones(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INHERITED", "1")
    process = launch("import os; print(os.environ['INHERITED'], os.environ['OWN'], flush=True)", OWN="2")
    said(process, "1 2")


def test_stdin_stays_open(launch: Launch) -> None:
    process = launch("print('up', flush=True); import time; time.sleep(60)")
    said(process, "up")
    assert Path(f"/proc/{process.pid}/fd/0").readlink().name.startswith("pipe:")


def test_stdin_ends_when_the_starter_dies(tmp_path: Path) -> None:
    code = f"""
import os, signal, sys
from pathlib import Path
from pytest_llmperf.launchers.local import LocalLauncher
from pytest_llmperf.model.command import Command
wait = "import sys; print('up', flush=True); sys.stdin.read(); print('over', flush=True)"
LocalLauncher().launch(Command(argv=(sys.executable, "-c", wait)), folder=Path({str(tmp_path)!r}), run_id="x")
while 'up' not in Path({str(tmp_path / "engine.log")!r}).read_text(): pass
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == -signal.SIGKILL
    wait_for(lambda: "over" in (tmp_path / "engine.log").read_text())


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StartError, match="cannot start /no/such/program: No such file") as caught:
        LocalLauncher().launch(Command(argv=("/no/such/program",)), folder=tmp_path, run_id="x")
    assert caught.value.cause == "missing"
