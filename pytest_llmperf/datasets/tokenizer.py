"""A model's tokenizer and vocabulary, from the files of its folder.

What is not in ``tokenizer.json`` itself is decided as by the ``transformers`` library, which vLLM uses: which tokens
are special, and whether a BOS is put before a text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import orjson

from pytest_llmperf.errors import DataError, UnavailableError
from pytest_llmperf.model.suite import Rules
from pytest_llmperf.workload import Tokenizer, Vocabulary

_SPECIAL = (
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token",
    "additional_special_tokens", "extra_special_tokens",
)  # fmt: skip

_OWN_TEMPLATE = {"LlamaTokenizer": True, "CodeLlamaTokenizer": True, "GemmaTokenizer": True}
"""Classes of transformers 4 that replace the template of ``tokenizer.json``, and whether they add a BOS unless told.

DeepSeek's tokenizers are of the first one. Transformers 5 takes the template as it is.
"""

_CLEANED = ((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't"), (" 'm", "'m"),
            (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"))  # fmt: skip
"""What ``clean_up_tokenization_spaces`` does to a decoded text."""


def read_vocabulary(folder: Path) -> Vocabulary:
    """The vocabulary of the model in ``folder``: from ``tokenizer.json``, else from ``config.json``.

    Added tokens (of chat templates, tools, reasoning) are left out, special ones too.

    Raises:
        UnavailableError: neither file is there.
        DataError: they do not say.
    """
    document = _json(folder / "tokenizer.json")
    if document is not None:
        words = document.get("model", {}).get("vocab", ())
        added = [token for token in document.get("added_tokens", ()) if token.get("special")]
        ids = {token["id"] for token in added} | _special_ids(folder, _ids(document))
        if words:
            return Vocabulary(len(words), frozenset(ids))
    config = _json(folder / "config.json")
    if config is None:
        raise UnavailableError(f"no tokenizer.json and no config.json in {folder} (model.path)")
    size = config.get("vocab_size") or config.get("text_config", {}).get("vocab_size")
    if not isinstance(size, int):
        raise DataError(f"{folder / 'config.json'}: no vocab_size; write vocab: N in the workload")
    return Vocabulary(size, frozenset(_config_ids(config)))


def read_tokenizer(folder: Path, rules: Rules) -> Tokenizer:
    """The tokenizer of the model in ``folder``, as that version of vLLM has it: 0.11.0 uses transformers 4, 0.32.0 5.

    Raises:
        UnavailableError: the file or the ``tokenizers`` package is not here.
        DataError: the package cannot read the file.
    """
    path = folder / "tokenizer.json"
    if not path.is_file():
        raise UnavailableError(f"no file {path}: model.path must be the folder of the model's files")
    state = path.stat()
    return _load(folder, rules, (state.st_size, state.st_mtime_ns))


@lru_cache(maxsize=4)
def _load(folder: Path, rules: Rules, version: tuple[int, int]) -> Tokenizer:  # noqa: ARG001
    try:
        import tokenizers  # noqa: PLC0415 (an extra)
    except ImportError:
        raise UnavailableError("tokenizers not installed: pip install 'pytest-llmperf[datasets]'") from None
    path = folder / "tokenizer.json"
    try:
        loaded = tokenizers.Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 (the package raises nothing narrower)
        raise DataError(f"{path}: not a tokenizer: {error}") from None
    loaded.no_padding()
    loaded.no_truncation()
    return _FileTokenizer(loaded, folder, rules)


class _FileTokenizer:
    """See ``workload.Tokenizer``."""

    def __init__(self, loaded: Any, folder: Path, rules: Rules) -> None:
        self._loaded = loaded
        config = _json(folder / "tokenizer_config.json") or {}
        self._clean = bool(config.get("clean_up_tokenization_spaces"))
        special = _special_ids(folder, loaded.get_vocab(with_added_tokens=True))
        self.vocabulary = Vocabulary(loaded.get_vocab_size(with_added_tokens=False), frozenset(special))
        by_file: int = loaded.num_special_tokens_to_add(is_pair=False)
        self.special_per_text = _special_by_class(config, by_file) if rules == "vllm-0.11.0" else by_file
        self.count = lru_cache(maxsize=1 << 17)(self._count)  # a file is looked through again for every run

    def encode(self, text: str) -> list[int]:
        ids: list[int] = self._loaded.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, tokens: Sequence[int]) -> str:
        text: str = self._loaded.decode(tokens, skip_special_tokens=False)
        for before, after in _CLEANED if self._clean else ():
            text = text.replace(before, after)
        return text

    def _count(self, text: str) -> int:
        return len(self.encode(text)) + self.special_per_text


def _special_by_class(config: Mapping[str, Any], by_file: int) -> int:
    name = str(config.get("tokenizer_class", "")).removesuffix("Fast")
    if name not in _OWN_TEMPLATE:
        return by_file
    return int(config.get("add_bos_token", _OWN_TEMPLATE[name])) + int(config.get("add_eos_token", False))


def _special_ids(folder: Path, ids: Mapping[str, int]) -> set[int]:
    """The ids of the tokens that the folder's files give a role."""
    config = dict(_json(folder / "tokenizer_config.json") or {})
    if "added_tokens_decoder" not in config:
        config |= _json(folder / "special_tokens_map.json") or {}
    return {ids[text] for role in _SPECIAL for text in _texts(config.get(role)) if text in ids}


def _texts(token: Any) -> Iterator[str]:
    """The tokens of one role: a text, ``{"content": TEXT}``, or several of them."""
    if isinstance(token, str):
        yield token
    elif isinstance(token, dict) and isinstance(token.get("content"), str):
        yield token["content"]
    elif isinstance(token, list | dict):
        for inner in token.values() if isinstance(token, dict) else token:
            yield from _texts(inner)


def _ids(document: Mapping[str, Any]) -> dict[str, int]:
    words = document.get("model", {}).get("vocab", ())
    known = dict(words) if isinstance(words, dict) else {entry[0]: place for place, entry in enumerate(words)}
    return known | {token["content"]: token["id"] for token in document.get("added_tokens", ())}


def _config_ids(config: Mapping[str, Any]) -> Iterator[int]:
    for name in ("bos_token_id", "eos_token_id", "pad_token_id"):
        value = config.get(name)
        yield from (each for each in (value if isinstance(value, list) else [value]) if isinstance(each, int))


def _json(path: Path) -> dict[str, Any] | None:
    """The object in a file; None where there is no file.

    Raises:
        DataError: it holds no JSON object.
    """
    try:
        value = orjson.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except orjson.JSONDecodeError as error:
        raise DataError(f"{path}: not JSON: {error}") from None
    if not isinstance(value, dict):
        raise DataError(f"{path}: not a JSON object")
    return value
