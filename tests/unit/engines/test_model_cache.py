from pathlib import Path

import pytest

from pytest_llmperf.engines import model_cache
from pytest_llmperf.engines.tiny_model import Shape
from pytest_llmperf.errors import UnavailableError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "pytest-llmperf" / "models"


def test_a_model_is_written_once(cache: Path) -> None:
    path = model_cache.ensure(Shape())
    assert path.parent == cache
    written = path.stat().st_ino
    assert model_cache.ensure(Shape()) == path
    assert path.stat().st_ino == written


def test_asking_for_the_path_writes_nothing(cache: Path) -> None:
    assert model_cache.path_of(Shape()).parent == cache
    assert not cache.exists()


def test_shapes_do_not_share_files() -> None:
    assert model_cache.ensure(Shape()) != model_cache.ensure(Shape(mtp_damage=0.3))


@pytest.mark.parametrize("damage", ["truncated", "flipped", "no digest"])
def test_a_damaged_file_is_not_served(damage: str) -> None:
    path = model_cache.ensure(Shape())
    good = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(good[: len(good) // 2])
    elif damage == "flipped":
        path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    else:
        path.with_suffix(".sha256").unlink()
        path.write_bytes(b"GGUF")
    assert model_cache.ensure(Shape()).read_bytes() == good


def test_a_cache_that_cannot_be_written_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(UnavailableError, match="set XDG_CACHE_HOME to a writable folder"):
        model_cache.ensure(Shape())
