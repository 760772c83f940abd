"""Adapters that only describe what an arm may say."""

from typing import ClassVar, Self

from pydantic import Field, model_validator

from pytest_llmperf.engines.base import EngineOptions


class ToyOptions(EngineOptions):
    speculative_tokens: int = Field(default=0, ge=0)
    threads: int = 1


class ToyShape(EngineOptions):
    layers: int = 2
    mtp_damage: float = Field(default=0.0, ge=0.0, le=1.0)


class Toy:
    Options = ToyOptions
    Shape = ToyShape


class RemoteOptions(EngineOptions):
    VARIABLE_FIELDS: ClassVar[frozenset[str]] = frozenset({"url"})

    url: str
    api_key_env: str | None = None


class RemoteShape(EngineOptions):
    pass


class Remote:
    Options = RemoteOptions
    Shape = RemoteShape


class BoxedOptions(EngineOptions):
    VARIABLE_FIELDS: ClassVar[frozenset[str]] = frozenset({"image", "binary"})

    image: str | None = None
    binary: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.image is None) == (self.binary is None):
            raise ValueError("needs either image or binary")
        return self


class Boxed:
    Options = BoxedOptions
    Shape = RemoteShape
