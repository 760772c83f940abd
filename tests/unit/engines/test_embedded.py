import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_llmperf.engines import embedded
from pytest_llmperf.engines.embedded import Embedded
from pytest_llmperf.errors import UsageError
from pytest_llmperf.model.suite import Arm, Model

LOGS = Path(__file__).parents[2] / "data" / "logs"
ARM = Arm(name="healthy", engine="embedded", model=Model(id="tiny"), options={"speculative_tokens": 3})
FOLDER = Path("folder")


@pytest.mark.parametrize(
    ("log", "cause"),
    [("broken_file", "weights"), ("no_file", "weights"), ("healthy", None)],
)
def test_recorded_logs_show_their_cause(log: str, cause: str | None) -> None:
    assert Embedded().classify((LOGS / f"xllamacpp-2026.10_{log}.txt").read_text()) == cause


def test_a_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded, "find_spec", lambda name: None if name == "xllamacpp" else object())
    assert Embedded().unavailable(ARM) == "xllamacpp not installed: pip install 'pytest-llmperf[embedded]'"


def test_a_missing_model_file_is_named(tmp_path: Path) -> None:
    mine = replace(ARM, model=Model(id="mine", path=str(tmp_path / "mine.gguf")))
    assert Embedded().unavailable(mine) == f"model.path: no file {tmp_path}/mine.gguf"
    (tmp_path / "mine.gguf").touch()
    assert Embedded().unavailable(mine) is None


def test_a_file_of_ones_own_is_served_and_has_no_shape() -> None:
    mine = replace(ARM, model=Model(id="mine", path="mine.gguf"))
    command = Embedded().command(mine, FOLDER)
    assert command is not None
    assert command.argv[command.argv.index("--model") + 1] == "mine.gguf"
    both = replace(ARM, model=Model(id="mine", path="mine.gguf", shape={"layers": 3}))
    with pytest.raises(UsageError, match=r"healthy: model\.path and layers exclude each other"):
        Embedded().prepare(both, FOLDER)


def test_the_model_is_part_of_the_identity() -> None:
    damaged = replace(ARM, model=Model(id="tiny", shape={"mtp_damage": 0.3}))
    assert Embedded().identity(ARM)["model_digest"] != Embedded().identity(damaged)["model_digest"]
    assert Embedded().identity(ARM)["engine_version"].startswith("xllamacpp 20")


def test_describing_an_engine_imports_nothing_heavy() -> None:
    heavy = {"numpy", "scipy", "gguf", "xllamacpp", "requests", "filelock"}
    code = (
        "import sys, pytest_llmperf.engines.embedded, pytest_llmperf.engines.external;"
        f"print(sorted({heavy!r} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
