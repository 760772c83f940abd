"""The command ``llmperf``, run as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.unit.baseline.examples import GOLDEN_CALIBRATED
from tests.unit.baseline.test_published import TEXT as PUBLISHED

BASELINE = """\
kind: measured
case: vllm/chat
workload: sha256:00
refuse_unless: {acceptance: none, client: llmperf, client_placement: shared, hardware: 1x-gpu, weights: real}
environment: {}
accepted: {on: 2026-11-30, commit: 4e0a037, why: "release 1.4 (#42)"}
sessions: [a, b]
metrics:
  output_throughput: [[100, 102], [101]]
"""


def llmperf(*args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from pytest_llmperf.cli import main; raise SystemExit(main())", *args]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)


def test_baseline_show_tells_values_spread_and_reason(tmp_path: Path) -> None:
    path = tmp_path / "baselines" / "1x-gpu" / "chat.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(BASELINE)
    done = llmperf("baseline", "show", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "release 1.4 (#42)" in done.stdout
    assert "101 tok/s   3 runs in 2 sessions   CV 0.99 %" in done.stdout


def test_baseline_show_tells_the_noise_of_each_metric(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_text(GOLDEN_CALIBRATED.read_text())
    done = llmperf("baseline", "show", "b.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout == GOLDEN_CALIBRATED.with_name("baseline_show.txt").read_text()


def test_baseline_show_has_published_numbers_in_a_table_of_their_own(tmp_path: Path) -> None:
    folder = tmp_path / "baselines" / "1x-gpu"
    folder.mkdir(parents=True)
    (folder / "chat.yaml").write_text(BASELINE)
    (folder / "chat.published.yaml").write_text(PUBLISHED.replace("2027", "2001"))
    done = llmperf("baseline", "show", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.split("baselines/1x-gpu/chat.yaml")
    assert "published, never judged" in first
    assert "2001-11-30   EXPIRED" in first
    assert "published" not in second
    (folder / "chat.published.yaml").write_text(BASELINE)
    assert "kind: 'measured' must be 'published'" in llmperf("baseline", "show", cwd=tmp_path).stderr


def test_baseline_show_without_baselines_says_how_to_record_one(tmp_path: Path) -> None:
    done = llmperf("baseline", "show", cwd=tmp_path)
    assert done.returncode == 2
    assert "--llmperf-accept=missing" in done.stderr


def test_a_broken_baseline_names_file_and_line(tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(BASELINE.replace("[[100", "[[none"))
    done = llmperf("baseline", "show", "x.yaml", cwd=tmp_path)
    assert done.returncode == 2
    assert "x.yaml:9:" in done.stderr


def test_no_command_is_a_usage_error(tmp_path: Path) -> None:
    assert llmperf(cwd=tmp_path).returncode == 2


def test_one_bad_file_hides_no_other(tmp_path: Path) -> None:
    folder = tmp_path / "baselines"
    (folder / "a-folder.yaml").mkdir(parents=True)
    (folder / "binary.yaml").write_bytes(bytes(range(256)))
    (folder / "dangling.yaml").symlink_to("nowhere")
    (folder / "zz.yaml").write_text(BASELINE)
    done = llmperf("baseline", "show", cwd=tmp_path)
    assert done.returncode == 2
    assert "binary.yaml:1: is no text" in done.stderr
    assert "Traceback" not in done.stderr
    assert "release 1.4 (#42)" in done.stdout
    assert "101 tok/s" in done.stdout


def test_help_names_the_commands_and_answers_at_once(tmp_path: Path) -> None:
    code = (
        "import sys; from pytest_llmperf.cli import main\n"
        "try: main(['--help'])\n"
        "finally: assert not {'numpy', 'scipy', 'pydantic', 'yaml'} & set(sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert all(f"\n    {command} " in done.stdout for command in ("baseline", "doctor", "report"))
