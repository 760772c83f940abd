"""The tokens of the embedded engine's model: one for every word of a prompt, one for every word of the reply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_llmperf.workload.words import WORDS

if TYPE_CHECKING:
    from gguf import GGUFWriter

REPLY: tuple[str, ...] = tuple(
    """
    hydrogen helium lithium beryllium boron carbon nitrogen oxygen fluorine neon sodium magnesium aluminium silicon
    phosphorus sulfur chlorine argon potassium calcium scandium titanium vanadium chromium manganese iron cobalt nickel
    copper zinc gallium germanium arsenic selenium bromine krypton rubidium strontium yttrium zirconium niobium
    molybdenum technetium ruthenium rhodium palladium silver cadmium indium tin
    """.split()  # noqa: SIM905 (one word a line would be 50 lines)
)
"""What the model says, over and over. None of these is in ``WORDS``, so no prompt can begin inside the cycle."""

_SPECIAL = ("<unk>", "<s>", "</s>")
_UNKNOWN, _CONTROL, _NORMAL, _BYTE = 2, 3, 1, 6
_SPACE = "\u2581"
_CHAT = "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}\n{% endfor %}assistant:"


def tokens() -> list[str]:
    """The vocabulary, for llama.cpp's SentencePiece tokenizer.

    It merges neighbours step by step, so every prefix of a word must be a token too. Bytes stand for all other text.
    """
    words = [_SPACE + word for word in (*REPLY, *WORDS)]
    prefixes = {word[:end] for word in words for end in range(1, len(word))} - set(words)
    return [
        *_SPECIAL,
        *(f"<0x{byte:02X}>" for byte in range(256)),
        *words,
        *sorted(prefixes),
        *map(chr, range(33, 127)),
    ]


def first_reply() -> int:
    """Id of the first word of ``REPLY``; the others follow it."""
    return len(_SPECIAL) + 256


def add_tokenizer(writer: GGUFWriter) -> None:
    """Put the tokenizer into a model file. No BOS: n words are n tokens."""
    vocabulary = tokens()
    kinds = [_UNKNOWN, _CONTROL, _CONTROL] + [_BYTE] * 256
    kinds += [_NORMAL] * (len(vocabulary) - len(kinds))
    writer.add_string("tokenizer.ggml.model", "llama")
    writer.add_array("tokenizer.ggml.tokens", vocabulary)
    writer.add_array("tokenizer.ggml.scores", [-float(rank) for rank in range(len(vocabulary))])
    writer.add_array("tokenizer.ggml.token_type", kinds)
    for role, token in (("unknown", 0), ("bos", 1), ("eos", 2)):
        writer.add_uint32(f"tokenizer.ggml.{role}_token_id", token)
    writer.add_bool("tokenizer.ggml.add_bos_token", val=False)
    writer.add_string("tokenizer.chat_template", _CHAT)
