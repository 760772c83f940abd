"""Single values as YAML: the shortest text that reads back as the same."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping

import yaml


def number(value: float) -> str:
    """The shortest text that reads back as the same number; whole numbers without a point."""
    text = repr(value).removesuffix(".0")
    mantissa, exponent, power = text.partition("e")
    # YAML 1.1 takes 1e-05 for a string; it wants a point.
    return text if not exponent or "." in mantissa else f"{mantissa}.0e{power}"


def scalar(text: str) -> str:
    """``text`` as YAML: plain where that reads back as the same string in any place, else in double quotes."""
    with contextlib.suppress(yaml.YAMLError, ValueError, TypeError):
        inside, block = yaml.safe_load(f"{{{text}: [{text}]}}"), yaml.safe_load(f"{text}: {text}")
        if inside == {text: [text]} and block == {text: text}:
            return text
    return yaml.safe_dump(text, default_style='"', width=math.inf, allow_unicode=True).rstrip("\n")


def flow(written: Mapping[str, str]) -> str:
    """A mapping of written values on one line."""
    return "{" + ", ".join(f"{key}: {value}" for key, value in written.items()) + "}"
