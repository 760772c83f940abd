from __future__ import annotations

from dataclasses import replace

from pytest_llmperf.model.suite import DataFile, Workload
from pytest_llmperf.pipeline.dealer import Dealer
from pytest_llmperf.workload import Deal

TALKS = Workload(name="a", kind="sharegpt", requests=10, data=DataFile(path="x", sha256="1"))


def test_runs_and_warm_ups_of_a_server_are_dealt_from_two_ends() -> None:
    dealer = Dealer(7)
    assert [dealer.deal("s1", TALKS, warm_up=False) for _ in range(2)] == [Deal(7, 0, 0), Deal(7, 1, 10)]
    assert [dealer.deal("s1", TALKS, warm_up=True) for _ in range(2)] == [Deal(7, -1, 0), Deal(7, -2, 10)]


def test_another_server_starts_from_the_top() -> None:
    dealer = Dealer(7)
    dealer.deal("s1", TALKS, warm_up=False)
    assert dealer.deal("s2", TALKS, warm_up=False) == Deal(7, 0, 0)


def test_cases_that_use_the_same_file_share_its_prompts_out() -> None:
    dealer = Dealer(7)
    dealer.deal("s", TALKS, warm_up=False)
    fewer = replace(TALKS, name="b", requests=3, data=DataFile(path="elsewhere", sha256="1"))
    assert dealer.deal("s", fewer, warm_up=False) == Deal(7, 1, 10)
    other = replace(TALKS, data=DataFile(path="x", sha256="2"))
    assert dealer.deal("s", other, warm_up=False) == Deal(7, 0, 0)


def test_random_prompts_get_a_seed_of_their_own_each_run() -> None:
    dealer = Dealer(2**32 + 7)
    short = Workload(name="a", kind="random", requests=10, input_tokens=8, output_tokens=8)
    places = [dealer.deal("s", workload, warm_up=False) for workload in (short, replace(short, input_tokens=9))]
    places.append(dealer.deal("s", short, warm_up=True))
    assert [place.run_seed for place in places] == [7, 8, 6], "vLLM takes no seed of more than 32 bits"
