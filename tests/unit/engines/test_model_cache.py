import errno
from pathlib import Path

import pytest

from pytest_llmperf.engines import model_cache
from pytest_llmperf.engines.tiny_model import Shape
from pytest_llmperf.errors import CacheError, EngineError, UnavailableError


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


@pytest.mark.parametrize("damage", ["truncated", "flipped", "no digest", "digest of other bytes"])
def test_a_damaged_file_is_not_served(damage: str) -> None:
    path = model_cache.ensure(Shape())
    good = path.read_bytes()
    if damage == "truncated":
        path.write_bytes(good[: len(good) // 2])
    elif damage == "flipped":
        path.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    elif damage == "digest of other bytes":
        path.with_suffix(".sha256").write_bytes(b"\xff\xfe\x00")
    else:
        path.with_suffix(".sha256").unlink()
        path.write_bytes(b"GGUF")
    assert model_cache.ensure(Shape()).read_bytes() == good
    healed = path.stat().st_ino
    model_cache.ensure(Shape())
    assert path.stat().st_ino == healed


def test_a_cache_that_cannot_be_written_says_what_to_set(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(CacheError, match="set XDG_CACHE_HOME to a writable folder"):
        model_cache.ensure(Shape())


def test_a_broken_cache_is_neither_a_missing_engine_nor_a_broken_one() -> None:
    assert not issubclass(CacheError, (UnavailableError, EngineError))


def test_a_full_disk_leaves_nothing_half_written(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def write_half(path: Path, shape: Shape) -> None:
        path.write_bytes(b"GGUF")
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(model_cache, "write", write_half)
    with pytest.raises(CacheError, match="No space left on device; set XDG_CACHE_HOME"):
        model_cache.ensure(Shape())
    assert [path.suffix for path in cache.iterdir() if path.suffix != ".lock"] == []


def test_an_intact_model_is_read_without_a_lock() -> None:
    path = model_cache.ensure(Shape())
    path.with_suffix(".lock").unlink(missing_ok=True)
    path.with_suffix(".lock").mkdir()  # as good as a read-only folder, also for root
    assert model_cache.ensure(Shape()) == path
    path.write_bytes(b"GGUF")
    with pytest.raises(CacheError, match="cannot write the model cache"):
        model_cache.ensure(Shape())


def test_a_user_without_a_home_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(CacheError, match="no home folder; set XDG_CACHE_HOME"):
        model_cache.ensure(Shape())
