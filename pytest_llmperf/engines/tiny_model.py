"""The embedded engine's model: DeepSeek-V3 in miniature, written as GGUF (MLA, MoE, one MTP layer).

The weights are random except for a cycle of words. Each word of ``REPLY`` has an embedding orthogonal to all others,
and the output head maps it to the word after it; every other token (so every prompt) leads to the first word. Attention
and experts are computed for real, but their share of the residual stream is too small to change a choice. So at
temperature 0:

- the text is the same for every prompt, printable, and never ends by itself;
- the MTP layer drafts rightly after exactly ``1 - mtp_damage`` of the words, so acceptance is a constant of the model
  and of the output length, whatever the prompts, the batch or the machine.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import Field, field_validator

from pytest_llmperf.engines.base import EngineOptions
from pytest_llmperf.engines.tiny_vocab import REPLY, add_tokenizer, first_reply, tokens

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from gguf import GGUFWriter

    Matrix = npt.NDArray[np.floating]

VERSION = 1
"""Part of every cache key: raise it whenever the same shape would be written differently."""

_ARCH = "deepseek2"
_HEADS, _Q_RANK, _KV_RANK, _ROPE, _NOPE, _VALUE, _EXPERTS = 4, 32, 32, 16, 16, 16, 4
_CONTEXT = 32768
_SEED = 1
_WEIGHT, _OUTPUT = 0.05, 0.005
"""Standard deviations: of inner weights, and of those that write to the residual stream."""


class Shape(EngineOptions):
    """What ``model:`` may say of the embedded engine's own model.

    Attributes:
        layers: transformer layers before the MTP layer; more are slower.
        width: embedding length; wider is slower.
        mtp_damage: share of words after which the MTP layer drafts wrongly; the text does not depend on it.
    """

    layers: int = Field(default=2, ge=1, le=256)
    width: int = Field(default=64, ge=64, le=2048, multiple_of=32)
    mtp_damage: float = Field(default=0.0, ge=0.0, le=1.0)

    @field_validator("layers")
    @classmethod
    def _readable(cls, layers: int) -> int:
        # llama.cpp takes deepseek2 with these many layers for V2-Lite and looks for tensors that V3 does not have.
        if layers in {26, 27}:
            raise ValueError("llama.cpp cannot read this shape with 26 or 27 layers; take 25 or 28")
        return layers


def digest(shape: Shape) -> str:
    """Twelve hex digits over the writer's version, the vocabulary and the shape: equal digests, equal files."""
    content = json.dumps([VERSION, tokens(), shape.model_dump()], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def damaged_words(share: float, words: int = len(REPLY)) -> frozenset[int]:
    """Indices of the words after which the MTP layer is wrong: ``round(share * words)``, evenly spread."""
    count = round(share * words)
    return frozenset(i for i in range(words) if (i + 1) * count // words > i * count // words)


def least_damage(before: float, drafted: int, loss: float, words: int = len(REPLY)) -> float | None:
    """The smallest ``mtp_damage`` that costs at least ``loss`` tokens per step; None when all of it does not.

    When the MTP layer is right after a share p of the words, a step of ``drafted`` tokens brings about
    L = 1 + p + p^2 + ... + p^drafted.
    """

    def length(damage: float) -> float:
        return sum((1 - damage) ** k for k in range(drafted + 1))

    wanted = length(before) - loss
    return next((n / words for n in range(words + 1) if length(n / words) <= wanted), None)


def write(path: Path, shape: Shape) -> None:
    """Write the model to ``path``; the same shape gives the same bytes."""
    import numpy as np  # noqa: PLC0415 (numpy and gguf are not for collection time)
    from gguf import GGUFWriter  # noqa: PLC0415

    writer = GGUFWriter(path, _ARCH)
    add_tokenizer(writer)
    _add_hyperparameters(writer, shape)
    tensors = _Tensors(writer, np.random.default_rng(_SEED))
    _add_words(tensors, shape)
    for layer in range(shape.layers + 1):
        _add_attention(tensors, f"blk.{layer}", shape.width)
        _add_feed_forward(tensors, f"blk.{layer}", shape.width, dense=layer == 0)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


class _Tensors:
    """Adds weights by name, random ones from one stream of random numbers."""

    def __init__(self, writer: GGUFWriter, rng: np.random.Generator) -> None:
        self.writer = writer
        self.rng = rng

    def add(self, name: str, matrix: Matrix) -> None:
        self.writer.add_tensor(f"{name}.weight", matrix.astype("float32"))

    def norm(self, name: str, size: int) -> None:
        import numpy as np  # noqa: PLC0415

        self.add(name, np.ones(size, np.float32))

    def random(self, name: str, *shape: int, scale: float = _WEIGHT) -> None:
        self.add(name, self.rng.standard_normal(shape, "float32") * scale)


def _add_hyperparameters(writer: GGUFWriter, shape: Shape) -> None:
    integers = {
        "context_length": _CONTEXT,
        "embedding_length": shape.width,
        "feed_forward_length": 2 * shape.width,
        "block_count": shape.layers + 1,
        "nextn_predict_layers": 1,
        "leading_dense_block_count": 1,
        "attention.head_count": _HEADS,
        "attention.head_count_kv": 1,
        "attention.q_lora_rank": _Q_RANK,
        "attention.kv_lora_rank": _KV_RANK,
        "attention.key_length": _KV_RANK + _ROPE,
        "attention.value_length": _KV_RANK,
        "attention.key_length_mla": _ROPE + _NOPE,
        "attention.value_length_mla": _VALUE,
        "rope.dimension_count": _ROPE,
        "expert_count": _EXPERTS,
        "expert_used_count": 2,
        "expert_shared_count": 1,
        "expert_feed_forward_length": shape.width,
        "expert_gating_func": 2,  # sigmoid
    }
    writer.add_string("general.name", "tiny-dsv3-mtp")
    for key, value in integers.items():
        writer.add_uint32(f"{_ARCH}.{key}", value)
    writer.add_float32(f"{_ARCH}.attention.layer_norm_rms_epsilon", 1e-5)
    writer.add_float32(f"{_ARCH}.expert_weights_scale", 1.0)
    writer.add_bool(f"{_ARCH}.expert_weights_norm", val=True)


def _add_words(tensors: _Tensors, shape: Shape) -> None:
    """Embedding, output head and MTP head, each (tokens, width).

    Row i of an orthogonal matrix stands for word i of ``REPLY``; the row after the last one stands for "any other
    token" and is the larger part of the embeddings of all of those.
    """
    import numpy as np  # noqa: PLC0415

    width, count, first, size = shape.width, len(REPLY), first_reply(), len(tokens())
    basis = np.linalg.qr(tensors.rng.standard_normal((width, width)))[0] * np.sqrt(width)
    own = tensors.rng.standard_normal((size, width - count - 1))
    own /= np.linalg.norm(own, axis=1, keepdims=True)
    embedding = 0.8 * basis[count] + 0.6 * own @ basis[count + 1 :]
    embedding[first : first + count] = basis[:count]
    head, draft_head = np.zeros((2, size, width))
    damaged = damaged_words(shape.mtp_damage)
    for word in range(count):
        right, wrong = (word + 1) % count, (word + 1 + count // 2) % count
        head[first + right] += basis[word]
        draft_head[first + (wrong if word in damaged else right)] += basis[word]
    head[first] += basis[count]
    tensors.add("token_embd", embedding)
    tensors.norm("output_norm", width)
    tensors.add("output", head)
    mtp = f"blk.{shape.layers}.nextn"
    # The MTP layer reads the last token's embedding and not the hidden state: a draft depends on one word alone.
    tensors.add(f"{mtp}.eh_proj", np.eye(width, 2 * width))
    for norm in ("enorm", "hnorm", "shared_head_norm"):
        tensors.norm(f"{mtp}.{norm}", width)
    tensors.add(f"{mtp}.shared_head_head", draft_head)


def _add_attention(tensors: _Tensors, block: str, width: int) -> None:
    tensors.norm(f"{block}.attn_norm", width)
    tensors.random(f"{block}.attn_q_a", _Q_RANK, width)
    tensors.norm(f"{block}.attn_q_a_norm", _Q_RANK)
    tensors.random(f"{block}.attn_q_b", _HEADS * (_ROPE + _NOPE), _Q_RANK)
    tensors.random(f"{block}.attn_kv_a_mqa", _KV_RANK + _ROPE, width)
    tensors.norm(f"{block}.attn_kv_a_norm", _KV_RANK)
    tensors.random(f"{block}.attn_k_b", _HEADS, _KV_RANK, _NOPE)
    tensors.random(f"{block}.attn_v_b", _HEADS, _VALUE, _KV_RANK)
    tensors.random(f"{block}.attn_output", width, _HEADS * _VALUE, scale=_OUTPUT)


def _add_feed_forward(tensors: _Tensors, block: str, width: int, *, dense: bool) -> None:
    tensors.norm(f"{block}.ffn_norm", width)
    if dense:
        tensors.random(f"{block}.ffn_gate", 2 * width, width)
        tensors.random(f"{block}.ffn_up", 2 * width, width)
        tensors.random(f"{block}.ffn_down", width, 2 * width, scale=_OUTPUT)
        return
    tensors.random(f"{block}.ffn_gate_inp", _EXPERTS, width)
    for name, scale in (("gate", _WEIGHT), ("up", _WEIGHT), ("down", _OUTPUT)):
        tensors.random(f"{block}.ffn_{name}_exps", _EXPERTS, width, width, scale=scale)
        tensors.random(f"{block}.ffn_{name}_shexp", width, width, scale=scale)
