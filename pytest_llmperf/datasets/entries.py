"""Entries: the lines of a JSONL file of prompts or of a trace, and the conversations of a ShareGPT file."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import orjson

from pytest_llmperf.errors import DataError
from pytest_llmperf.model.suite import MOST
from pytest_llmperf.workload import Arrival, Entry


def prompts(content: bytes, file: str) -> tuple[Entry, ...]:
    """One entry a line: ``{"prompt": TEXT}`` or ``{"messages": [{"role": ..., "content": ...}, ...]}``.

    Either may have ``output_tokens``; other keys are left alone.

    Raises:
        DataError: a line that is none of these.
    """
    return tuple(_prompt(value, where) for value, where in json_lines(content, file))


def conversations(content: bytes, file: str) -> tuple[Entry, ...]:
    """``[{"conversations": [{"value": TEXT}, {"value": TEXT}, ...]}, ...]``; those of one turn are left out.

    Raises:
        DataError: the file is no such list.
    """
    try:
        document = orjson.loads(content)
        if not isinstance(document, list):
            raise TypeError("no list")  # noqa: TRY301 (all that is wrong ends in one text)
        talks = [talk["conversations"] for talk in document if len(talk.get("conversations", ())) > 1]
        return tuple(Entry(prompt=talk[0]["value"] + "", answer=talk[1]["value"] + "") for talk in talks)
    except (orjson.JSONDecodeError, TypeError, AttributeError, KeyError, IndexError) as error:
        raise DataError(
            f"{file}: not a ShareGPT file, a JSON list of "
            f'{{"conversations": [{{"value": TEXT}}, {{"value": TEXT}}]}}: {error}'
        ) from None


def arrivals(content: bytes, file: str) -> tuple[Arrival, ...]:
    """One arrival a line, as in Mooncake's traces: ``{"timestamp": MS, "input_length": N, "output_length": N}``.

    Timestamps are milliseconds from any moment on; the lengths may be missing.

    Raises:
        DataError: a line that is none, or one that is earlier than the line before it.
    """
    found: list[Arrival] = []
    first = last = -math.inf
    for value, where in json_lines(content, file):
        at = value.get("timestamp")
        if isinstance(at, bool) or not isinstance(at, int | float):
            raise DataError(f'{where}: needs "timestamp", in milliseconds')
        if at < last:
            raise DataError(f"{where}: timestamp {at} is earlier than {last:g} on the line before; sort the trace")
        first, last = (at if not found else first), at
        found.append(
            Arrival(
                at_s=(at - first) / 1000,
                input_tokens=whole_number(value, "input_length", where),
                output_tokens=whole_number(value, "output_length", where),
            )
        )
    return tuple(found)


def json_lines(content: bytes, file: str) -> Iterator[tuple[dict[str, Any], str]]:
    """The JSON object of each line that is not blank, with its place as ``FILE:LINE``.

    Raises:
        DataError: a line that holds none.
    """
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = orjson.loads(line)
        except orjson.JSONDecodeError as error:
            raise DataError(f"{file}:{number}: not JSON: {error}") from None
        if not isinstance(value, dict):
            raise DataError(f"{file}:{number}: not a JSON object")
        yield value, f"{file}:{number}"


def whole_number(value: dict[str, Any], name: str, where: str) -> int | None:
    """A count of at least 1, within ``MOST``; None when the key is missing or null.

    Raises:
        DataError: anything else is there.
    """
    number = value.get(name)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= MOST:
        raise DataError(f"{where}: {name}: {number!r} must be a whole number of at least 1 and at most {MOST}")
    return number


def _prompt(value: dict[str, Any], where: str) -> Entry:
    prompt, messages = value.get("prompt"), value.get("messages")
    if isinstance(prompt, str) and prompt and messages is None:
        return Entry(prompt=prompt, output_tokens=whole_number(value, "output_tokens", where), where=where)
    if isinstance(messages, list) and prompt is None and messages and all(map(_is_message, messages)):
        asked = whole_number(value, "output_tokens", where)
        return Entry(messages=tuple(messages), output_tokens=asked, where=where)
    raise DataError(f'{where}: needs either "prompt", a text, or "messages", a list of {{"role": ..., "content": ...}}')


def _is_message(value: Any) -> bool:
    return isinstance(value, dict) and isinstance(value.get("role"), str) and "content" in value
