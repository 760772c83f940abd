import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pytest_llmperf.engines.tiny_model import Shape, damaged_words, digest, write
from pytest_llmperf.engines.tiny_vocab import REPLY, first_reply, tokens
from pytest_llmperf.workload.words import WORDS


def test_no_prompt_can_begin_inside_the_reply() -> None:
    assert not set(WORDS) & set(REPLY)


def test_every_token_is_there_once_and_every_word_can_be_merged_step_by_step() -> None:
    vocabulary = tokens()
    assert len(set(vocabulary)) == len(vocabulary)
    for word in ("\u2581" + word for word in (*REPLY, *WORDS)):
        assert all(word[:end] in vocabulary for end in range(1, len(word) + 1))


def test_the_reply_follows_its_first_token() -> None:
    start = first_reply()
    assert tokens()[start : start + len(REPLY)] == ["\u2581" + word for word in REPLY]


@given(share=st.floats(0, 1), words=st.integers(1, 200))
def test_damage_is_exact_and_evenly_spread(share: float, words: int) -> None:
    bad = sorted(damaged_words(share, words))
    assert len(bad) == round(share * words)
    assert all(0 <= word < words for word in bad)
    around = [*bad, bad[0] + words] if bad else []
    gaps = {later - earlier for earlier, later in itertools.pairwise(around)}
    assert not gaps or max(gaps) - min(gaps) <= 1


def test_the_same_shape_gives_the_same_bytes(tmp_path: Path) -> None:
    write(tmp_path / "one.gguf", Shape())
    write(tmp_path / "two.gguf", Shape())
    assert (tmp_path / "one.gguf").read_bytes() == (tmp_path / "two.gguf").read_bytes()


def test_damage_changes_the_draft_head_and_nothing_else(tmp_path: Path) -> None:
    from gguf import GGUFReader  # noqa: PLC0415

    write(tmp_path / "healthy.gguf", Shape())
    write(tmp_path / "damaged.gguf", Shape(mtp_damage=0.3))
    healthy, damaged = (
        {tensor.name: tensor.data.tobytes() for tensor in GGUFReader(tmp_path / f"{name}.gguf").tensors}
        for name in ("healthy", "damaged")
    )
    assert {name for name in healthy if healthy[name] != damaged[name]} == {"blk.2.nextn.shared_head_head.weight"}


def test_equal_shapes_have_equal_digests() -> None:
    assert digest(Shape()) == digest(Shape(layers=2))
    assert len({digest(Shape()), digest(Shape(layers=3)), digest(Shape(width=96)), digest(Shape(mtp_damage=0.1))}) == 4


@pytest.mark.parametrize(
    "wrong",
    [{"width": 65}, {"width": 32}, {"layers": 0}, {"layers": 26}, {"layers": 27}, {"mtp_damage": 1.1}, {"x": 1}],
)
def test_a_shape_that_cannot_be_served_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValidationError):
        Shape.model_validate(wrong)
