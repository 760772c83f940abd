"""``llmperf history`` as a user runs it, over nights that were made for it."""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import pytest

from pytest_llmperf.baseline import Accepted, Baseline, Store
from tests.cli.commands import llmperf
from tests.unit.history.nights import FACTS, NOW, save

CHANGED, NIGHTS, NODES = 24, 40, 5


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Forty nights on five nodes.

    Of arm ``new``: 5 % less throughput since the 24th night, with another engine, and a mean TTFT of two modes. Of arm
    ``old``: as ever, but that node4 is 3 % slow.
    """
    rng, root = np.random.default_rng(1), tmp_path_factory.mktemp("nights")
    for night in range(NIGHTS):
        ago, node = NIGHTS - night, f"node{night % NODES}"
        after = night >= CHANGED
        ttft = 41.0 if rng.random() < 0.4 else 26.0
        throughput, luck, *others = np.exp(0.006 * rng.normal(size=5)).tolist()
        for run in range(2):
            save(
                root / ".llmperf",
                ago - run / 1000,
                {
                    "output_throughput": throughput * (712.5 if after else 750.0) * (1 + 0.001 * run),
                    "mean_ttft_ms": ttft * luck,
                },
                session=f"night-{night:02}-new",
                facts={"node": node, "engine_version": "0.27.0" if after else "0.26.0"},
            )
        slow = math.log(1.03) if node == "node4" else 0.0
        values = {
            "output_throughput": 500 * math.exp(-slow) * others[0],
            "mean_tpot_ms": 15 * math.exp(slow) * others[1],
            "mean_e2el_ms": 2000 * math.exp(slow) * others[2],
        }
        save(
            root / ".llmperf",
            ago,
            values,
            arm="old",
            case="old",
            session=f"night-{night:02}-old",
            facts={"node": node},
        )
    return root


@pytest.fixture
def root(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "nights")
    return tmp_path / "nights"


def accept(root: Path, throughput: float, on: date) -> None:
    refused = ("hardware", "weights", "acceptance", "client", "client_placement")
    stored = Baseline(
        case="new/chat", workload=FACTS["workload"], refuse_unless={key: FACTS[key] for key in refused},
        environment={}, accepted=Accepted(on=on, commit="c", why="w"), sessions=("a",),
        metrics={"output_throughput": ((throughput,),)},
    )  # fmt: skip
    Store(root / "baselines").write_case(FACTS["hardware"], "suite", stored, any_hardware=False)


def test_what_nights_say_together(root: Path, golden: Callable[[str, str], None]) -> None:
    accept(root, 752.0, date(2025, 10, 1))
    done = llmperf("history", cwd=root)
    assert (done.returncode, done.stderr) == (0, "")
    golden("history.txt", done.stdout)
    assert done.stdout in (Path(__file__).parents[2] / "docs" / "history.md").read_text(encoding="utf-8")


def test_sessions_before_the_baseline_are_no_creep(root: Path) -> None:
    accept(root, 752.0, date(2025, 11, 25))
    done = llmperf("history", "--metrics", "output_throughput", cwd=root)
    assert "baseline 752.0" in done.stdout
    assert "against the baseline" not in done.stdout


def test_one_document_has_every_session_and_figure(root: Path) -> None:
    accept(root, 752.0, date(2025, 10, 1))
    done = llmperf("history", "--json", "--case", "new/chat", "--metrics", "output_throughput=4%", cwd=root)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    (case,) = document["cases"]
    assert (case["suite"], case["case"], case["arm"], case["runs"]) == ("suite", "new/chat", "new", 2 * NIGHTS)
    (metric,) = case["metrics"].values()
    assert (metric["unit"], metric["margin"], metric["baseline"], metric["modes"]) == ("tok/s", 0.04, 752.0, None)
    assert [each["session"] for each in metric["sessions"]] == [f"night-{night:02}-new" for night in range(NIGHTS)]
    (point,) = metric["change_points"]
    assert (point["at"], point["session"], point["worse"]) == (CHANGED, f"night-{CHANGED}-new", True)
    assert point["changed"] == {"engine_version": ["0.26.0", "0.27.0"]}
    assert metric["creep"]["nights"] == 11
    assert document["slow_nodes"] == []
    assert document["left_out"] == 0


def test_slow_nodes_are_told_for_machines_too(root: Path) -> None:
    (node,) = json.loads(llmperf("history", "--json", cwd=root).stdout)["slow_nodes"]
    assert (node["node"], node["nights"]) == ("node4", 16)


def test_what_cannot_be_used_is_counted_and_hides_nothing(root: Path) -> None:
    first, second, third = sorted((root / ".llmperf" / "runs").iterdir())[:3]
    (first / "run.json").write_text("{")
    (second / "run.json").unlink()
    failed = json.loads((third / "run.json").read_text())
    (third / "run.json").write_text(json.dumps({**failed, "failed": 1}))
    accept(root, 752.0, date(2025, 10, 1))
    (stored,) = root.glob("baselines/**/*.yaml")
    stored.write_text("kind: nonsense\n")
    done = llmperf("history", cwd=root)
    assert done.returncode == 0
    assert "new/chat, arm new   39 sessions, 78 runs" in done.stdout
    assert "left out: 3 runs;" in done.stderr
    assert "kind: 'nonsense' must be 'measured'" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--case", "new/code"], "--case new/code: no saved run of it; there are new/chat, old/chat"),
        (["--metrics", "speed"], "unknown metric"),
        (["nowhere"], "no saved run here"),
    ],
)
def test_what_makes_no_sense(root: Path, arguments: list[str], said: str) -> None:
    done = llmperf("history", *arguments, cwd=root)
    assert done.returncode == 2
    assert said in done.stderr


def test_one_session_is_a_short_history(tmp_path: Path) -> None:
    save(tmp_path / ".llmperf", 1, {"output_throughput": 100.0})
    done = llmperf("history", cwd=tmp_path)
    assert done.stdout.splitlines() == [
        "suite: new/chat, arm new   1 session, 1 run, 2025-11-29",
        "  output_throughput   ▄   last 100.0 tok/s",
    ]
    assert NOW.day == 30
