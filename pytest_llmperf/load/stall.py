"""The stall rule: has the engine gone silent? No I/O."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_llmperf.load.wire import Beat


def silent_for_s(beats: Sequence[Beat]) -> float:
    """How long no byte has come on any stream of any worker while something was in flight; 0 when nothing is.

    Any byte is a sign of life, that of a comment too: to tell them apart would cost time while the clock runs. A server
    that sends nothing but comments for ever is bounded by the request timeout.

    Counted from the last byte, or from when the first of the requests now in flight found its worker idle if that is
    later. Sending more does not set it back. The worker's own clock readings are used, so a late heartbeat never
    makes the engine look silent.
    """
    busy = [beat for beat in beats if beat.in_flight > 0]
    if not busy:
        return 0.0
    last_byte_ns = max(beat.last_byte_ns for beat in beats)
    quiet_since = max(last_byte_ns, min(beat.busy_since_ns for beat in busy))
    return max(0, min(beat.now_ns for beat in busy) - quiet_since) / 1e9
