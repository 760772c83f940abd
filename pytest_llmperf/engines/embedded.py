"""The embedded engine: llama.cpp's server in a process of its own, with a tiny DeepSeek-V3-shaped model of ours."""

from __future__ import annotations

import hashlib
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from pytest_llmperf.engines import prefix_cache, speculation
from pytest_llmperf.engines.base import Ask, EngineOptions
from pytest_llmperf.engines.resolved import flattened
from pytest_llmperf.engines.tiny_model import Shape, digest, least_damage
from pytest_llmperf.errors import UsageError
from pytest_llmperf.model.acceptance import Acceptance
from pytest_llmperf.model.command import Command
from pytest_llmperf.model.counters import Counters
from pytest_llmperf.model.prefix_hits import PrefixHits
from pytest_llmperf.model.request_fields import RequestFields
from pytest_llmperf.model.suite import Arm

_NEEDED = ("xllamacpp", "gguf")

_SIGNS = (
    ("missing", r"No module named|cannot open shared object"),
    ("arguments", r"embedded_server: error:|target model has no MTP|does not support MTP"),
    ("port", r"couldn't bind|[Aa]ddress already in use"),
    ("memory", r"failed to allocate|unable to allocate|std::bad_alloc|[Cc]annot allocate memory"),
    ("weights", r"failed to load model|failed to open GGUF|model loading error"),
    ("crash", r"GGML_ASSERT|terminate called|Segmentation fault|Fatal Python error"),
)
"""Cause and what the log says of it, most telling first: one failure prints many of these lines."""


class EmbeddedOptions(EngineOptions):
    """How the server runs.

    Attributes:
        speculative_tokens: tokens that the MTP layer drafts per step; 0 switches speculation off.
        threads: of the engine's arithmetic; more than the machine has idle cores makes it slower and noisier.
        parallel: requests served at once; the others wait.
        context: tokens per request, prompt and answer together.
        port: 0 lets the kernel give one.
        prompt_cache: whether a prompt that was seen before is taken from memory, which no measurement wants.
    """

    speculative_tokens: int = Field(default=0, ge=0, le=16)
    threads: int = Field(default=1, ge=1)
    parallel: int = Field(default=4, ge=1, le=32)
    context: int = Field(default=4096, ge=256)
    port: int = Field(default=0, ge=0, le=65535)
    prompt_cache: bool = False


class Embedded:
    """Real HTTP, batching, speculative decoding and counters on any machine; ``model.path`` serves another GGUF."""

    Options: ClassVar[type[EngineOptions]] = EmbeddedOptions
    Shape: ClassVar[type[EngineOptions]] = Shape

    def unavailable(self, arm: Arm) -> str | None:
        """A package or the arm's own model file is missing."""
        if missing := [name for name in _NEEDED if find_spec(name) is None]:
            return f"{' and '.join(missing)} not installed: pip install 'pytest-llmperf[embedded]'"
        if arm.model.path is not None and not Path(arm.model.path).is_file():
            return f"model.path: no file {arm.model.path}"
        return None

    def prepare(self, arm: Arm, folder: Path) -> None:  # noqa: ARG002 (the contract's signature)
        """Write the model into the cache, unless the arm brings its own.

        Raises:
            UsageError: the arm asks for a file of its own and for a shape.
            CacheError: the cache cannot be written.
        """
        if arm.model.path is not None:
            if arm.model.shape:
                raise UsageError(f"{arm.name}: model.path and {', '.join(arm.model.shape)} exclude each other")
            return
        from pytest_llmperf.engines import model_cache  # noqa: PLC0415 (filelock is not for collection time)

        model_cache.ensure(_shape(arm))

    def command(self, arm: Arm, folder: Path) -> Command | None:
        """This interpreter, running ``engines.embedded_server``."""
        from pytest_llmperf.engines import model_cache  # noqa: PLC0415

        options = _options(arm)
        model = arm.model.path or str(model_cache.path_of(_shape(arm)))
        argv = [sys.executable, "-m", "pytest_llmperf.engines.embedded_server", "--model", model]
        argv += ["--alias", arm.model.id, "--address-file", str(folder / "address"), "--port", str(options.port)]
        argv += ["--speculative-tokens", str(options.speculative_tokens), "--threads", str(options.threads)]
        argv += ["--parallel", str(options.parallel), "--context", str(options.context)]
        argv += ["--prompt-cache"] * options.prompt_cache
        return Command(argv=tuple(argv))

    def address(self, arm: Arm, folder: Path) -> str | None:  # noqa: ARG002
        """As the server published it."""
        try:
            return (folder / "address").read_text()
        except FileNotFoundError:
            return None

    def fixed_port(self, arm: Arm) -> int | None:
        """The arm's ``port`` unless it is 0."""
        return _options(arm).port or None

    def elsewhere(self, arm: Arm) -> str | None:  # noqa: ARG002
        """It is ours, and here."""
        return None

    def api_key_env(self, arm: Arm) -> str | None:  # noqa: ARG002
        """The server asks for no key; it listens on 127.0.0.1 alone."""
        return None

    def request_fields(self, arm: Arm) -> RequestFields:  # noqa: ARG002
        """llama.cpp knows no field that counts the tokens of a chunk."""
        return RequestFields()

    def acceptance(self, arm: Arm, before: Counters, after: Counters) -> Acceptance | None:  # noqa: ARG002
        """From llama.cpp's counters, positions included."""
        return speculation.acceptance(before, after)

    def prefix_hits(self, arm: Arm, before: Counters, after: Counters) -> PrefixHits | None:  # noqa: ARG002
        """From llama.cpp's counters."""
        return prefix_cache.prefix_hits(before, after)

    def with_less_acceptance(self, arm: Arm, loss: float) -> Arm | None:
        """With more of the MTP layer damaged: the share d of ``tiny_model.least_damage``."""
        options, shape = _options(arm), _shape(arm)
        if arm.model.path is not None or options.speculative_tokens == 0:
            return None
        damage = least_damage(shape.mtp_damage, options.speculative_tokens, loss)
        if damage is None:
            return None
        return replace(arm, model=replace(arm.model, shape={**arm.model.shape, "mtp_damage": damage}))

    def identity(self, arm: Arm) -> Mapping[str, str]:
        """The wheel's version (llama.cpp's own build number is not in it) and the digest of the model."""
        model = digest(_shape(arm)) if arm.model.path is None else _file_digest(Path(arm.model.path))
        return {
            "engine": "embedded",
            "engine_version": f"xllamacpp {version('xllamacpp')}",
            "model_digest": model,
        }

    def in_effect(self, arm: Arm, ask: Ask) -> Mapping[str, str] | None:
        """The options that it was started with, and over them what llama.cpp's own page says."""
        options = flattened(_options(arm).model_dump(mode="json"))
        return {**options, **flattened(ask("/props"))}

    def classify(self, log: str) -> str | None:
        """By llama.cpp's own words."""
        return next((cause for cause, pattern in _SIGNS if re.search(pattern, log)), None)


_DIGESTED_BYTES = 1 << 20


def _file_digest(path: Path) -> str:
    """Tells model files apart without reading all of a large one: size, first and last MiB."""
    size = path.stat().st_size
    with path.open("rb") as file:
        content = hashlib.sha256(str(size).encode() + file.read(_DIGESTED_BYTES))
        file.seek(max(0, size - _DIGESTED_BYTES))
        content.update(file.read())
    return content.hexdigest()[:12]


def _options(arm: Arm) -> EmbeddedOptions:
    return EmbeddedOptions.model_validate(arm.options)


def _shape(arm: Arm) -> Shape:
    return Shape.model_validate(arm.model.shape)
