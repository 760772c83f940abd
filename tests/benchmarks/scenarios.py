"""The scenarios, each with the bars that it must clear."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from statistics import mean

from tests.benchmarks.arena import Arena, Result
from tests.benchmarks.ask import Ask
from tests.benchmarks.contenders import Contender, Ours

MEDIAN_LIMIT, P99_LIMIT = 0.02, 0.25
"""How far the client's ITL may be from the server's own."""
_ROUNDS = 3
_LATE_TICKS = 2
"""Of each thread of the server; with more of them it was the server that could not keep up."""


@dataclass(frozen=True, slots=True)
class Bar:
    claim: str
    found: str
    cleared: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Contest:
    """Who runs, and where; of ``others`` those that are there: vLLM's function, AIPerf, the floor in C."""

    arena: Arena
    vllm: Contender | None = None
    aiperf: Contender | None = None
    floor: Contender
    ours: Contender = field(default_factory=Ours)

    @property
    def all(self) -> list[Contender]:
        return [each for each in (self.floor, self.ours, self.vllm, self.aiperf) if each is not None]


Outcome = Result | Bar
"""A scenario yields each result as it comes, and its bars."""


def cpu(contest: Contest, *, streams: int = 256, tokens: int = 500) -> Iterator[Outcome]:
    """CPU per chunk of everybody, one after another on the same cores."""
    results = {}
    for client in contest.all:
        results[client.name] = contest.arena.run(client, Ask(streams=streams, tokens=tokens))
        yield results[client.name]
    ours = results[contest.ours.name].us_per_chunk
    for other, limit in ((contest.floor, 1.5), (contest.vllm, 1 / 4), (contest.aiperf, 1 / 4)):
        if other is not None:
            ratio = ours / results[other.name].us_per_chunk
            claim = f"CPU per chunk at {streams} streams: at most {limit:g} of {other.name}"
            yield Bar(claim, f"{ratio:.2f}", ratio <= limit)


def pace(contest: Contest, *, tokens: int = 150) -> Iterator[Outcome]:
    """500 and 1000 streams of 50 tokens a second on one core."""
    cores = contest.arena.client_cores[:1]
    arena = contest.arena.with_client(cores)
    half = arena.run(contest.ours, Ask(streams=500, tokens=tokens, workers=1))
    yield half
    yield Bar("500 streams on one core: valid and true", _truth(half), _true(half) and half.valid)
    full = arena.run(contest.ours, Ask(streams=1000, tokens=tokens, workers=1))
    yield full
    yield Bar("1000 streams on one core: true, or INVALID", _truth(full), _true(full) or not full.valid)
    yield _delivered(full)
    if contest.vllm is not None:
        yield arena.run(contest.vllm, Ask(streams=1000, tokens=tokens))


def spread(contest: Contest, *, tokens: int = 150) -> Iterator[Outcome]:
    """1000 streams on two workers, and on as many as the client itself takes."""
    for workers in (2, None):
        result = contest.arena.run(contest.ours, Ask(streams=1000, tokens=tokens, workers=workers))
        yield result
        count = result.seen.client["workers"]
        yield Bar(f"1000 streams on {count} workers: valid and true", _truth(result), _true(result) and result.valid)
        yield _delivered(result)


def scaling(contest: Contest, *, workers: int = 8, tokens: int = 100) -> Iterator[Outcome]:
    """How many chunks a second one worker carries and how many ``workers`` do: up to the first run of each that is not
    true, or that the server itself cannot keep up with."""
    carried = {}
    for count in (1, workers):
        carried[count] = 0.0
        arena = contest.arena.with_client(contest.arena.client_cores[:count])
        for streams in range(500, 2501, 250):
            result = arena.run(contest.ours, Ask(streams=streams * count, tokens=tokens, workers=count))
            yield result
            if not (_true(result) and result.delivered == result.ask.streams) or server_was_slow(result, arena):
                break
            carried[count] = result.chunks_per_s
    ratio, limit = carried[workers] / max(carried[1], 1), 0.75 * workers
    found = f"{ratio:.1f}: {carried[1]:.0f} chunks/s by one, {carried[workers]:.0f} by {workers}"
    yield Bar(f"{workers} workers carry at least {limit:g} times what one carries", found, ratio >= limit)


def agreement(contest: Contest, *, streams: int = 4, tokens: int = 32) -> Iterator[Outcome]:
    """Ours and vLLM's function by turns, on the same schedule at low load.

    No two clients see the very same bytes. So each one's mean is first divided by what the server itself logged of the
    same run, and these quotients are compared: what differs between two runs of the server drops out.
    """
    if contest.vllm is None:
        return
    ask = Ask(streams=streams, tokens=tokens, requests=10 * streams)
    results: dict[str, list[Result]] = {contest.ours.name: [], contest.vllm.name: []}
    for client in (contest.ours, contest.vllm) * _ROUNDS:
        results[client.name].append(contest.arena.run(client, ask))
        yield results[client.name][-1]
    for latency in ("ttft", "tpot", "itl", "e2el"):
        ours, vllm = (mean(result.error(latency, "mean") for result in results[each]) for each in results)
        apart = (1 + ours) / (1 + vllm) - 1
        found = f"{apart:+.2%} (beside the server's own: ours {ours:+.2%}, vLLM's {vllm:+.2%})"
        yield Bar(f"mean {latency} within 1 % of vLLM's", found, abs(apart) <= 0.01)
    tokens_seen = {result.seen.timings.tokens for each in results.values() for result in each}
    yield Bar("tokens exact", f"{sorted(tokens_seen)} of {ask.total * tokens}", tokens_seen == {ask.total * tokens})


SCENARIOS = {"cpu": cpu, "pace": pace, "spread": spread, "scaling": scaling, "agreement": agreement}


def _true(result: Result) -> bool:
    return (
        abs(result.error("itl", "median")) <= MEDIAN_LIMIT
        and abs(result.error("itl", "p99")) <= P99_LIMIT
        and result.seen.timings.tokens == result.server.tokens
    )


def _truth(result: Result) -> str:
    words = f"median ITL {result.error('itl', 'median'):+.1%}, p99 {result.error('itl', 'p99'):+.1%}"
    return f"{words}; {'; '.join(result.seen.invalid) or 'valid'}"


def _delivered(result: Result) -> Bar:
    asked = result.ask.streams
    return Bar(f"{asked} streams requested are {asked} delivered", str(result.delivered), result.delivered == asked)


def server_was_slow(result: Result, arena: Arena) -> bool:
    return result.late_ticks > _LATE_TICKS * len(arena.server_cores)
