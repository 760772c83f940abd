from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_llmperf.load.job import Job
from pytest_llmperf.load.shares import split, worker_count
from pytest_llmperf.model.endpoint import Endpoint
from pytest_llmperf.model.plan import Plan, PlannedRequest
from pytest_llmperf.model.suite import DataFile, Load, Ramp, Trace


def plan_of(load: Load, requests: int, output_tokens: int = 100) -> Plan:
    request = PlannedRequest(body='{"é": 1}'.encode(), at_ns=None, input_tokens=None, output_tokens=output_tokens)
    return Plan(api="chat", requests=(request,) * requests, load=load, seed=0, exact_output=True)


def jobs_of(load: Load, requests: int, workers: int) -> list[Job]:
    endpoint = Endpoint(url="http://h:1", model="m", api_key_env="KEY")
    return split(plan_of(load, requests), endpoint, Path("/f"), workers=workers, request_timeout_s=9)


def closed(value: float) -> Load:
    return Load(kind="concurrency", value=value)


@pytest.mark.parametrize(
    ("concurrency", "requests", "workers"), [(7, 20, 3), (2, 20, 3), (50, 4, 8), (1, 1, 1), (10**7, 8, 3)]
)
def test_shares_add_up(concurrency: int, requests: int, workers: int) -> None:
    jobs = jobs_of(closed(concurrency), requests, workers)
    assert sorted(request.index for job in jobs for request in job.requests) == list(range(requests))
    assert sum(job.concurrency or 0 for job in jobs) == min(concurrency, requests)
    assert all((job.concurrency or 0) <= len(job.requests) for job in jobs)
    assert len(jobs) == min(workers, concurrency, requests)
    assert all(job.concurrency for job in jobs)


def test_an_open_loop_deals_requests_round_robin() -> None:
    first, second = jobs_of(Load(kind="burst"), 5, 2)
    assert [[request.index for request in job.requests] for job in (first, second)] == [[0, 2, 4], [1, 3]]
    assert first.concurrency is None
    assert (first.path, first.api_key_env) == ("/v1/chat/completions", "KEY")


def test_a_conversation_stays_with_one_worker() -> None:
    plan = replace(plan_of(closed(4), 8), turns=3)
    endpoint = Endpoint(url="http://h:1", model="m")
    jobs = split(plan, endpoint, Path("/f"), workers=4, request_timeout_s=9)
    assert [[request.index for request in job.requests] for job in jobs] == [[0, 1, 2], [3, 4, 5], [6, 7]]
    assert [job.turns for job in jobs] == [3, 3, 3]


def test_a_job_survives_its_file(tmp_path: Path) -> None:
    (job,) = jobs_of(closed(2), 3, 1)
    job.write(tmp_path / "job")
    assert Job.read(tmp_path / "job") == job


def test_a_job_lies_in_a_folder_of_any_name(tmp_path: Path) -> None:
    endpoint = Endpoint(url="http://h:1", model="m")
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    (job,) = split(plan_of(closed(1), 1), endpoint, folder, workers=1, request_timeout_s=9)
    job.write(tmp_path / "job")
    assert Path(Job.read(tmp_path / "job").rows).parent == folder


@pytest.mark.parametrize(
    ("load", "requests", "most", "workers"),
    [
        (closed(4), 32, 7, 1),
        (closed(1000), 2000, 9, 8),
        (closed(1000), 125, 7, 1),
        (closed(1000), 126, 7, 2),
        (closed(1000), 2000, 1, 1),
        (closed(100_000), 100_000, 7, 7),
        (Load(kind="burst"), 400, 7, 4),
        (Load(kind="request_rate", value=120.0), 10, 7, 3),
        (Load(kind="ramp", ramp=Ramp(start=1.0, end=120.0)), 10, 7, 3),
        (Load(kind="ramp", ramp=Ramp(start=120.0, end=1.0)), 10, 7, 3),
        (closed(4), 32, 0, 1),
    ],
)
def test_worker_count(load: Load, requests: int, most: int, workers: int) -> None:
    assert worker_count(plan_of(load, requests), most) == workers


@pytest.mark.parametrize(("gap_ns", "workers"), [(1_000_000_000, 1), (10_000_000, 2), (0, 20)])
def test_a_trace_needs_workers_for_its_busiest_second(gap_ns: int, workers: int) -> None:
    trace = Load(kind="trace", trace=Trace(data=DataFile(path="t")))
    plan = plan_of(trace, 1000)
    at = [replace(request, at_ns=i * gap_ns) for i, request in enumerate(plan.requests)]
    assert worker_count(replace(plan, requests=tuple(at)), 99) == workers


def test_each_worker_has_a_core_of_its_own_while_there_are_enough() -> None:
    endpoint = Endpoint(url="http://x", model="m")

    def cores_of(workers: int, cores: tuple[int, ...]) -> list[int | None]:
        jobs = split(plan_of(closed(8), 8), endpoint, Path("/f"), workers=workers, request_timeout_s=9, cores=cores)
        return [job.core for job in jobs]

    assert cores_of(2, (6, 7)) == [6, 7]
    assert cores_of(1, (6, 7)) == [6]
    assert cores_of(3, (6, 7)) == [6, 7, 6]
    assert cores_of(2, ()) == [None, None]
