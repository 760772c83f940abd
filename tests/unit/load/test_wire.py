from __future__ import annotations

import pytest

from pytest_llmperf.load import wire


@pytest.mark.parametrize(
    "message",
    [
        wire.Ready(),
        wire.Start(2**62),
        wire.Beat(1, 2, 3, 4, 5, 6, 7, True),
        wire.Stop(2, "stalled: no byte\nfor 5 s"),
        wire.Stopping(),
        wire.Saved(),
    ],
)
def test_a_message_is_one_line_and_comes_back(message: wire.Message) -> None:
    line = wire.encode(message)
    assert line.count(b"\n") == 1
    assert wire.decode(line) == message


@pytest.mark.parametrize("line", [b"", b"warning: something", b'["Nothing", {}]', b'["Start", {}]', b"[]", b"1"])
def test_anything_else_is_an_error(line: bytes) -> None:
    with pytest.raises(ValueError, match="no message"):
        wire.decode(line)
