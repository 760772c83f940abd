"""Kept: is there everything in the run's folder that the suite asked to keep?"""

from __future__ import annotations

from pytest_llmperf.model.finding import Finding, Status


def raw_responses(kept: int, requests: int, limit: int) -> Finding:
    """Whether the raw responses of all requests were kept, where the suite says so; ``limit`` in bytes a run."""
    return Finding(
        check="raw_responses",
        status=Status.PASS if kept == requests else Status.FAIL,
        policy="warn",
        value=f"{kept} of {requests} kept",
        expected=f"all, in at most {limit / 2**20:.0f} MiB a run",
        evidence="raw/ of the run's folder",
        remedy="ask for fewer requests a run, or make room on the disk",
    )
