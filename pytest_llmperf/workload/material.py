"""Material: what plans need beside their definition, read from files before anything is measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol


@dataclass(frozen=True)
class Vocabulary:
    """The token ids of a model: all below ``size``, of which the ``special`` ones are no text."""

    size: int
    special: frozenset[int] = frozenset()

    @cached_property
    def plain(self) -> Sequence[int]:
        """The ids that are text, ascending."""
        return [token for token in range(self.size) if token not in self.special]


class Tokenizer(Protocol):
    """A model's tokenizer, as far as prompts need it."""

    @property
    def vocabulary(self) -> Vocabulary:
        """Without the tokens that were added to the trained vocabulary."""

    @property
    def special_per_text(self) -> int:
        """How many special tokens (a BOS, for example) the tokenizer puts around one text."""

    def encode(self, text: str) -> list[int]:
        """The tokens of a text, without special ones around it."""

    def count(self, text: str) -> int:
        """How many tokens a text has, with special ones around it."""

    def decode(self, tokens: Sequence[int]) -> str:
        """The text of tokens, special ones included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line or conversation of a data file.

    Attributes:
        prompt: the text; "" where there are messages.
        messages: a chat, as the API takes it.
        answer: what was answered when the data were recorded; only its length matters.
        output_tokens: how many tokens to ask for; None where the file does not say.
        where: ``FILE:LINE``, for messages; "" where a file has no lines.
    """

    prompt: str = ""
    messages: tuple[Mapping[str, Any], ...] = ()
    answer: str = ""
    output_tokens: int | None = None
    where: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """One line of a trace.

    Attributes:
        at_s: seconds after the first line.
        input_tokens: length of the prompt; None where the trace does not say.
        output_tokens: length of the answer; None where the trace does not say.
    """

    at_s: float
    input_tokens: int | None = None
    output_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """What was read; each part is there where the workload's kind needs it."""

    vocabulary: Vocabulary | None = None
    tokenizer: Tokenizer | None = None
    entries: Sequence[Entry] = ()
    arrivals: Sequence[Arrival] = ()
