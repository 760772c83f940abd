"""The checks of a machine, each seen to fail, and none of them passing what it could not read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_llmperf.checks import conditions
from pytest_llmperf.checks.profile import PROFILES, profile_of
from pytest_llmperf.model.expectation import Expectation
from pytest_llmperf.model.finding import Status
from pytest_llmperf.model.gpu import Fabric, Memory, Mode, PowerProfiles, Process, RemappedRows, Vboost
from pytest_llmperf.model.host_facts import HostFacts, InfinibandPort, Xid
from pytest_llmperf.model.reading import Answer, Reading, lacking
from pytest_llmperf.model.redaction import redacted
from pytest_llmperf.model.snapshot import Snapshot
from tests.machines import RECORDED, b200, board, gpu_of, h200, look, subject, unread, with_gpu, with_host

FAIL, PASS, NA = Status.FAIL, Status.PASS, Status.NOT_APPLICABLE


def test_the_recorded_h200_is_fit() -> None:
    found = look(h200())
    assert not [str(finding) for finding in found.values() if finding.status is FAIL]
    assert not [name for name, finding in found.items() if finding.unverified]
    assert {name for name, finding in found.items() if finding.status is Status.UNSUPPORTED} == {"governor", "turbo"}
    assert found["vboost"].value == "0 of 4"
    assert found["power_limit"].value == "700 W, 100% of the default"
    assert found["power_profile"].value == "not part of this hardware (h200)"
    assert found["nvlink"].status is found["fabric"].status is found["p2p"].status is NA


def test_a_board_of_eight_is_fit() -> None:
    found = look(board(), nodes=1)
    assert not [str(finding) for finding in found.values() if finding.status is FAIL or finding.unverified]
    assert found["nvlink"].value == "18 of 18 links active"


LATENCY = {
    "persistence_mode": Expectation(policy="require", value="on"),
    "vboost": Expectation(policy="require", value="4"),
    "env.TRTLLM_ENABLE_PDL": Expectation(policy="require", value="1"),
}
"""What a published latency run on B200 asks for."""


def test_a_synthetic_board_of_b200_is_fit_for_the_published_latency_run() -> None:
    found = look(b200(), expectations=LATENCY)
    assert profile_of(b200()).name == "b200"
    assert not [str(finding) for finding in found.values() if finding.status is FAIL or finding.unverified]
    assert found["power_profile"].value == "none"


@pytest.mark.parametrize(
    ("machine", "failed"),
    [
        (with_gpu(b200(), 5, vboost=Vboost(current=0, maximum=4)), "vboost"),
        (with_gpu(b200(), 5, persistence=False), "persistence_mode"),
        (with_host(b200(), environment={}), "env.TRTLLM_ENABLE_PDL"),
    ],
)
def test_what_the_published_latency_run_asks_for_is_required(machine: Snapshot, failed: str) -> None:
    found = look(machine, expectations=LATENCY)
    assert [name for name, finding in found.items() if finding.invalidates] == [failed]


@pytest.mark.parametrize("file", sorted(RECORDED.parent.glob("*.json")), ids=lambda file: str(file.name))
def test_every_stored_machine_says_where_it_is_from(file: Path) -> None:
    stored = Snapshot.from_dict(json.loads(file.read_text(encoding="utf-8")))
    assert stored.origin in {"recorded", "derived", "synthetic"}
    assert stored.note
    assert redacted(stored) == stored


PROCESS = Process(pid=7, name="/usr/bin/trainer", user="ann", memory_bytes=1 << 30)

ON_A_GPU: list[tuple[str, dict[str, Any], str]] = [
    ("gpus", {"name": lacking(Answer.FAILED, "nvmlDeviceGetName: 15")}, "8; GPU 3 (GPU-3) lost"),
    ("persistence_mode", {"persistence": False}, "GPU 3 (GPU-3): off; the other 7: on"),
    ("power_limit", {"power_limit_enforced_mw": 500_000}, "GPU 3 (GPU-3): 500 W, 71% of the default"),
    ("pdl", {}, "off"),
    ("clock_limits", {"event_reasons": 0x3}, "GPU 3 (GPU-3): limited; the other 7: none"),
    ("clock_limits", {"application_clocks_mhz": (1500, 3201)}, "application clock 1500 of 1980 MHz"),
    ("power_profile", {"power_profiles": PowerProfiles(requested=(), enforced=(1, 77))}, "MAX_Q, 77"),
    ("power_smoothing", {"power_smoothing": True}, "on"),
    ("ecc", {"ecc": Mode(current=True, pending=False)}, "on, off after a reset"),
    ("mig", {"mig": Mode(current=True, pending=True)}, "on"),
    ("compute_mode", {"compute_mode": 2}, "prohibited"),
    ("compute_mode", {"compute_mode": 3, "processes": (PROCESS,)}, "exclusive and in use"),
    ("throttle", {"event_reasons": 0x20}, "sw thermal"),
    ("throttle", {"event_reasons": 0x40}, "hw thermal"),
    ("throttle", {"event_reasons": 0x80}, "hw power brake"),
    ("thermal_headroom", {"margin_c": 5}, "5 K"),
    ("thermal_headroom", {"margin_c": 0, "temperature_c": 86}, "3 K"),
    (
        "remapped_rows",
        {"remapped_rows": RemappedRows(correctable=9, uncorrectable=0, pending=True, failed=False)},
        "pend",
    ),
    (
        "remapped_rows",
        {"remapped_rows": RemappedRows(correctable=0, uncorrectable=1, pending=False, failed=True)},
        "fail",
    ),
    ("recovery_action", {"recovery_action": 2}, "reboot the machine"),
    ("pcie", {"pcie_width": 8}, "8 of 16 lanes"),
    ("pcie", {"pcie_generation": 3, "event_reasons": 0}, "generation 3 of 5"),
    ("foreign_processes", {"processes": (PROCESS,)}, "/usr/bin/trainer (PID 7, ann)"),
    ("memory_in_use", {"memory": Memory(total=150 << 30, used=2 << 30, reserved=0)}, "2048 MiB in use, and no process"),
    ("idle_utilisation", {"utilisation_percent": 6}, "6 %"),
    ("same_gpus", {"part_number": "699-21010-0200-300"}, "NVIDIA H200 692-2G520-0282-001 700 W and"),
    ("same_gpus", {"power_limit_enforced_mw": 690_000}, "690 W"),
    ("nvlink", {"nvlinks": (1,) * 17 + (0,)}, "17 of 18 links active"),
    ("nvlink", {"nvlinks": (1,) * 17}, "17 of 18 links active"),
    ("nvlink", {"nvlinks": (1,) * 17 + (3,)}, "17 of 18 links active"),
    ("fabric", {"fabric": Fabric(state=2, status=0)}, "registration in progress"),
    ("fabric", {"fabric": Fabric(state=3, status=999)}, "status 999"),
    ("fabric", {"fabric": Fabric(state=3, status=0, health_summary=2)}, "unhealthy"),
    ("fabric", {"fabric": Fabric(state=3, status=0, health_mask=0b1)}, "degraded bandwidth"),
    (
        "p2p",
        {"p2p": {f"GPU-{n}": Reading((0, 5 * (n == 1), 0), evidence="a call") for n in range(8) if n != 3}},
        "to GPU 1 no writing",
    ),
]


@pytest.mark.parametrize(("name", "changes", "value"), ON_A_GPU, ids=lambda each: each if isinstance(each, str) else "")
def test_what_is_wrong_with_one_gpu_is_found_and_named(name: str, changes: dict[str, Any], value: str) -> None:
    snapshot = with_host(board(), environment={"TRTLLM_ENABLE_PDL": "0"})
    found = look(with_gpu(snapshot, 3, **changes))[name]
    assert found.status is FAIL
    assert value in found.value
    assert found.expected
    assert found.evidence
    assert "{gpus}" not in found.remedy


PORT = InfinibandPort(device="mlx5_0", port=1, state="ACTIVE", rate_gbps=400.0, errors=1)

OF_THE_HOST: list[tuple[str, dict[str, Any], str]] = [
    ("xid", {"xids": (Xid(bus_id="0000:04:00", code=79, age_s=60),)}, "Xid 79 on 0000:04:00"),
    ("fabric_manager", {"fabric_manager": False}, "not running"),
    ("governor", {"governor": "performance and powersave"}, "performance and powersave"),
    ("cpu_pressure", {"cpu_pressure_percent": 10.1}, "10.1 %"),
    ("cpu_quota", {"cpu_quota_cores": 4.0, "cpu_throttled": 12}, "4 CPUs, used up in 12 periods"),
    ("cpu_thermal", {"cpu_thermal_throttles": 3}, "3 times"),
    ("numa", {"numa_nodes": {0: (64, 65)}}, "no CPU of node 0 may be used"),
    ("numa_balancing", {"numa_balancing": True, "numa_nodes": {0: (0,), 1: (1,)}}, "on"),
    ("locked_memory", {"memlock_bytes": 8 << 20, "infiniband": (PORT,)}, "8 MiB"),
    ("open_files", {"open_files": 1024}, "1024"),
    ("shared_memory", {"shm_bytes": 64 << 20}, "64 MiB"),
    ("acs", {"acs": ("0000:00:01.0",)}, "on at 0000:00:01.0"),
    ("infiniband", {"infiniband": (replace(PORT, state="DOWN"),)}, "mlx5_0/1 is DOWN"),
    ("infiniband", {"infiniband": ()}, "0 ports active"),
    ("infiniband", {"infiniband": (replace(PORT, errors=3),)}, "2 new errors"),
    ("clock", {"clock_error_ms": 11.0}, "off by up to 11.0 ms"),
    (
        "harmful_environment",
        {"environment": {"NCCL_DEBUG": "info", "CUDA_LAUNCH_BLOCKING": "1"}},
        "CUDA_LAUNCH_BLOCKING=1",
    ),
]


@pytest.mark.parametrize(
    ("name", "changes", "value"), OF_THE_HOST, ids=lambda each: each if isinstance(each, str) else ""
)
def test_what_is_wrong_with_the_host_is_found(name: str, changes: dict[str, Any], value: str) -> None:
    earlier = with_host(board(), cpu_throttled=0, cpu_thermal_throttles=0, infiniband=(PORT,))
    found = look(with_host(earlier, **changes), nodes=2, earlier=earlier)[name]
    assert found.status is FAIL
    assert value in found.value
    assert found.expected


SHOWN_ONLY = {"gpu_identity", "driver", "vboost", "confidential_compute", "turbo", "transparent_hugepages", "runtime",
              "environment", "rank_memory", "infiniband_rate"}  # fmt: skip
"""Checks without a rule of their own, which compare or record; and one that needs a running engine."""


def test_every_check_of_the_table_is_seen_to_fail_above() -> None:
    assert {name for name, *_ in (*ON_A_GPU, *OF_THE_HOST)} | SHOWN_ONLY == set(conditions.CONDITIONS)


@pytest.mark.parametrize("answer", [Answer.NOT_PERMITTED, Answer.UNSUPPORTED, Answer.UNKNOWN])
def test_what_cannot_be_read_never_passes(answer: Answer) -> None:
    found = dict(look(unread(board(), answer), nodes=2))
    counted = found.pop("gpus")  # how many there are is known without asking one
    assert counted.value == "8"
    assert not [str(finding) for finding in found.values() if finding.status is PASS]
    unverified = {name for name, finding in found.items() if finding.unverified}
    assert {"persistence_mode", "power_limit", "xid", "foreign_processes", "p2p", "nvlink", "infiniband"} <= unverified
    assert not [finding for finding in found.values() if finding.invalidates]


def test_a_lost_gpu_fails_every_check_that_asks_it() -> None:
    lost = gpu_of(unread(board(), Answer.FAILED), 5)
    gpus = tuple(lost if gpu.index == 5 else gpu for gpu in board().gpus)
    found = look(replace(board(), gpus=gpus))
    for name in ("persistence_mode", "ecc", "throttle", "foreign_processes", "memory_in_use", "nvlink", "p2p"):
        assert found[name].status is FAIL, name
    assert "GPU 5 (GPU-5)" in found["persistence_mode"].value


CHANGES: list[dict[str, Any]] = [changes for _, changes, _ in ON_A_GPU]


@given(st.lists(st.sampled_from([{}, *CHANGES]), min_size=4, max_size=4), st.permutations(range(4)))
def test_the_order_of_gpus_never_matters(changes: list[dict[str, Any]], order: list[int]) -> None:
    snapshot = board(4)
    for index, change in enumerate(changes):
        snapshot = with_gpu(snapshot, index, **change)
    shuffled = replace(snapshot, gpus=tuple(snapshot.gpus[index] for index in order))
    assert look(snapshot) == look(shuffled)
    assert conditions.facts(subject(snapshot)) == conditions.facts(subject(shuffled))


def test_remedies_name_the_gpus_that_they_are_for() -> None:
    found = look(with_gpu(with_gpu(board(), 2, persistence=False), 6, persistence=False))["persistence_mode"]
    assert "nvidia-smi -i 2,6 -pm 1" in found.remedy


def test_a_machine_without_gpus_is_asked_nothing_about_them() -> None:
    bare = Snapshot(taken="t", origin="synthetic", host=HostFacts(), driver=lacking(Answer.UNSUPPORTED, "nvmlInit: 12"))
    assert set(look(bare)) == {each.name for each in conditions.HOST_CONDITIONS}
    asked = look(bare, gpus=8)["gpus"]
    assert (asked.status, asked.value, asked.evidence) == (FAIL, "none: unsupported", "nvmlInit: 12")


def test_fewer_gpus_than_asked() -> None:
    assert look(board(2), gpus=4)["gpus"].status is FAIL


@pytest.mark.parametrize(
    ("name", "profile"),
    [("NVIDIA H200", "h200"), ("NVIDIA B200", "b200"), ("NVIDIA H100 80GB HBM3", "h100"), ("NVIDIA L40S", "nvidia")],
)
def test_the_profile_is_the_products(name: str, profile: str) -> None:
    assert profile_of(with_gpu(h200(), name=name)).name == profile


def test_a_machine_without_gpus_has_the_profile_of_its_cpu() -> None:
    bare = replace(h200(), gpus=())
    assert profile_of(bare) is PROFILES[-1]
    assert look(with_host(bare, cpu_pressure_percent=50.0))["cpu_pressure"].policy == "warn"


def test_a_suite_says_what_must_be_and_why() -> None:
    wanted = {"vboost": Expectation(policy="require", value="4", reason="as the published run had it")}
    found = look(h200(), expectations=wanted)["vboost"]
    assert found.invalidates
    assert found.expected == "4 (as the published run had it)"
    boosted = with_gpu(h200(), vboost=Vboost(current=4, maximum=4))
    assert look(boosted, expectations=wanted)["vboost"].status is PASS


def test_a_suites_value_stands_in_for_the_checks_own_rule() -> None:
    declared = {"clock_limits": Expectation(value="limited"), "persistence_mode": Expectation(value="OFF")}
    found = look(with_gpu(h200(), event_reasons=0x2, persistence=False), expectations=declared)
    assert found["clock_limits"].status is found["persistence_mode"].status is PASS
    assert look(h200(), expectations=declared)["persistence_mode"].status is FAIL


def test_a_suites_value_of_what_cannot_be_read_is_unverified() -> None:
    blind = with_gpu(h200(), vboost=lacking(Answer.UNKNOWN, "nvidia-smi boost-slider -l: no answer within 20 s"))
    found = look(blind, expectations={"vboost": Expectation(policy="require", value="4")})["vboost"]
    assert (found.status, found.unverified, found.invalidates) == (Status.UNKNOWN, True, False)


def test_ignored_is_not_asked() -> None:
    assert "xid" not in look(h200(), expectations={"xid": Expectation(policy="ignore")})


def test_what_differs_from_the_baseline_cannot_be_compared() -> None:
    stored = conditions.facts(subject(h200()))
    assert {"vboost": "0", "ecc": "on", "confidential_compute": "off"}.items() <= stored.items()
    same = look(h200(), baseline=stored)
    assert not [finding for finding in same.values() if finding.incomparable]
    boosted = look(with_gpu(h200(), vboost=Vboost(current=1, maximum=4)), baseline=stored)["vboost"]
    assert (boosted.incomparable, boosted.invalidates, boosted.expected) == (True, False, "0, as in the baseline")


def test_slower_ports_than_the_baselines_cannot_be_compared() -> None:
    fast = with_host(h200(), infiniband=(PORT, PORT))
    stored = conditions.facts(subject(fast, nodes=2))
    assert stored["infiniband_rate"] == "400 + 400 Gbit/s"
    slow = with_host(h200(), infiniband=(PORT, replace(PORT, rate_gbps=200.0)))
    assert look(slow, nodes=2, baseline=stored)["infiniband_rate"].incomparable


def test_a_state_that_the_baseline_had_too_is_comparable() -> None:
    limited = with_gpu(h200(), event_reasons=0x2)
    assert look(limited)["clock_limits"].incomparable
    assert not look(limited, baseline=conditions.facts(subject(limited)))["clock_limits"].incomparable


def test_a_variable_of_the_engine_can_be_required() -> None:
    wanted = {"env.TRTLLM_ENABLE_PDL": Expectation(value="1")}
    assert look(h200(), expectations=wanted)["env.TRTLLM_ENABLE_PDL"].invalidates
    on = with_host(h200(), environment={"TRTLLM_ENABLE_PDL": "1"})
    assert look(on, expectations=wanted)["env.TRTLLM_ENABLE_PDL"].status is PASS
    hidden = with_host(h200(), environment=lacking(Answer.NOT_PERMITTED, "/proc/7/environ: permission denied"))
    assert look(hidden, expectations=wanted)["env.TRTLLM_ENABLE_PDL"].unverified


def test_an_exporter_may_be_allowed_by_name_with_what_it_holds() -> None:
    exporter = Process(pid=9, name="/usr/bin/dcgm-exporter", user="root", memory_bytes=3 << 30)
    memory = Memory(total=150 << 30, used=3 << 30, reserved=0)
    machine = with_gpu(h200(), processes=(exporter,), memory=memory)
    strict = look(machine)
    assert strict["foreign_processes"].status is strict["memory_in_use"].status is FAIL
    allowed = look(machine, expectations={"foreign_processes": Expectation(allow=("dcgm-exporter",))})
    assert allowed["foreign_processes"].status is allowed["memory_in_use"].status is PASS


def test_the_engines_own_processes_are_not_foreign() -> None:
    machine = with_gpu(h200(), processes=(PROCESS,), memory=Memory(total=150 << 30, used=1 << 30, reserved=0))
    found = look(machine, own=frozenset({7}))
    assert found["foreign_processes"].status is found["memory_in_use"].status is PASS
    assert found["idle_utilisation"].status is NA


def test_what_an_unseen_engine_holds_is_not_known() -> None:
    machine = with_gpu(h200(), memory=Memory(total=150 << 30, used=100 << 30, reserved=0))
    assert look(machine, own=frozenset({7}))["memory_in_use"].status is Status.UNKNOWN


def rank(pid: int, mib: int) -> Process:
    return Process(pid=pid, name="worker", memory_bytes=mib << 20)


def test_ranks_that_leave_a_context_on_gpu_0_are_shown() -> None:
    clean = board(4)
    for index in range(4):
        clean = with_gpu(clean, index, processes=(rank(100 + index, 60_000),))
    own = frozenset(range(100, 104))
    assert look(clean, own=own)["rank_memory"].status is PASS
    strays = (rank(100, 60_000), rank(101, 500), rank(102, 500), rank(103, 500))
    found = look(with_gpu(clean, 0, processes=strays), own=own)["rank_memory"]
    assert (found.status, found.policy) == (FAIL, "warn")
    assert found.value == "of ranks that belong elsewhere, GPU 0: 1500 MiB"


def test_one_process_that_drives_all_gpus_is_no_stray() -> None:
    machine = board(4)
    for index in range(4):
        machine = with_gpu(machine, index, processes=(rank(7, 50_000 + index),))
    assert look(machine, own=frozenset({7}))["rank_memory"].status is PASS


def test_rows_that_were_replaced_are_healthy() -> None:
    rows = RemappedRows(correctable=12, uncorrectable=0, pending=False, failed=False)
    assert look(with_gpu(h200(), remapped_rows=rows))["remapped_rows"].status is PASS


@pytest.mark.parametrize(("reasons", "status"), [(0x1, PASS), (0x4, PASS), (0x10, PASS), (0x8, PASS), (0x800, PASS)])
def test_what_is_no_fault_before_a_run(reasons: int, status: Status) -> None:
    assert look(with_gpu(h200(), event_reasons=reasons))["throttle"].status is status


def test_a_hardware_slowdown_counts_when_it_stays_and_unknown_bits_are_shown() -> None:
    slow = with_gpu(h200(), event_reasons=0x808)
    assert look(slow)["throttle"].status is PASS
    found = look(slow, earlier=slow)["throttle"]
    assert (found.status, found.value) == (FAIL, "hw slowdown, 0x800")


def test_on_one_node_there_is_nothing_to_balance() -> None:
    one = with_host(h200(), numa_balancing=True, numa_nodes={0: (0, 1)})
    assert look(one)["numa_balancing"].status is PASS


def test_pcie_may_rest_and_errors_of_links_count_when_they_are_new() -> None:
    assert look(with_gpu(h200(), pcie_generation=1, event_reasons=0x1))["pcie"].status is PASS
    before = with_gpu(board(), 3, nvlink_errors=10)
    assert look(before, earlier=before)["nvlink"].status is PASS
    assert look(with_gpu(before, 3, nvlink_errors=12), earlier=before)["nvlink"].value.startswith(
        "GPU 3 (GPU-3): 18 of 18 links active, 2 new errors"
    )


@pytest.mark.parametrize(
    ("xid", "status"),
    [
        (Xid(bus_id="0000:00:06", code=79, age_s=7199), FAIL),
        (Xid(bus_id="0000:00:06", code=79, age_s=7201), PASS),
        (Xid(bus_id="0000:07:00", code=79, age_s=10), PASS),
        (Xid(bus_id="0000:00:06", code=31, age_s=10), PASS),
    ],
)
def test_reports_count_when_recent_serious_and_of_our_gpus(xid: Xid, status: Status) -> None:
    assert look(with_host(h200(), xids=(xid,)))["xid"].status is status


def test_a_name_that_no_check_has_is_guessed() -> None:
    assert conditions.unknown("vboost") == conditions.unknown("env.NCCL_DEBUG") == ""
    assert "did you mean 'persistence_mode'?" in conditions.unknown("persistance_mode")
    assert "known: gpus" in conditions.unknown("zzz")
    assert conditions.unknown("env.")
