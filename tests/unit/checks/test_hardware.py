from __future__ import annotations

from dataclasses import replace

from pytest_llmperf.checks.hardware import differences, hardware_class
from pytest_llmperf.model.reading import Answer, lacking
from tests.machines import board, h200, with_gpu

ONE = {
    "gpu_count": "1",
    "gpu_name": "NVIDIA H200",
    "gpu_part": "692-2G520-0282-001",
    "gpu_memory": "140 GiB",
    "gpu_power_limit": "700 W",
    "interconnect": "no NVLink",
}


def test_the_class_of_the_recorded_h200() -> None:
    assert hardware_class(h200()) == ONE
    assert hardware_class(board())["interconnect"] == "18 NVLinks"


def test_another_part_of_one_name_is_another_class_and_the_reason_says_so() -> None:
    other = hardware_class(with_gpu(h200(), part_number="692-2G520-0200-000", power_limit_enforced_mw=600_000))
    assert differences(ONE, other) == [
        "gpu part: baseline 692-2G520-0282-001, here 692-2G520-0200-000",
        "gpu power limit: baseline 700 W, here 600 W",
    ]
    assert differences(ONE, ONE) == []


def test_gpus_that_differ_are_counted_in_whatever_order_they_come() -> None:
    mixed = with_gpu(board(), 2, power_limit_enforced_mw=500_000)
    assert hardware_class(mixed)["gpu_power_limit"] == "7x 700 W, 1x 500 W"
    assert hardware_class(replace(mixed, gpus=mixed.gpus[::-1])) == hardware_class(mixed)


def test_what_is_not_known_is_not_equal_and_what_the_baseline_does_not_state_does_not_matter() -> None:
    blind = hardware_class(with_gpu(h200(), part_number=lacking(Answer.UNSUPPORTED, "a call: 3")))
    assert differences(ONE, blind) == ["gpu part: baseline 692-2G520-0282-001, here unknown"]
    assert differences(blind, ONE) == []


def test_links_that_may_not_be_asked_for_are_not_known_to_be_absent() -> None:
    assert "interconnect" not in hardware_class(with_gpu(h200(), nvlinks=lacking(Answer.NOT_PERMITTED, "a call: 4")))


def test_a_machine_without_gpus_has_no_class_of_them() -> None:
    assert hardware_class(replace(h200(), gpus=())) == {}
