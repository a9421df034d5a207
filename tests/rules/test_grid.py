"""Grids too small for the device, and tail waves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import H100, Scene

SMS = 132
CAPACITY = SMS * 16  # blocks of 4 warps with 32 registers: 16 fill the 64 warps of an SM


def grids(
    blocks: int, hardware: Mapping[str, Any] | None = H100, name: str = "scan", *, beside: bool = False
) -> NsysExport:
    """Ten launches of 100 with a grid of `blocks`; `beside`: each for half its time beside a full one."""
    scene = Scene(hardware)
    for start in range(0, 1000, 100):
        scene.gpu.kernel(start, start + 100, name, **configuration(blocks))
        if beside:
            scene.gpu.kernel(start + 50, start + 100, "full", **configuration(CAPACITY), streamId=13)
    return scene.export


def configuration(blocks: int) -> dict[str, int]:
    ones = dict.fromkeys(("gridY", "gridZ", "blockY", "blockZ"), 1)
    return {**ones, "gridX": blocks, "blockX": 128, "registersPerThread": 32}


CASES = {
    "kernels.grid": ThreeCases(
        fires=lambda: grids(33),
        clear=lambda: grids(CAPACITY),
        untold=lambda: grids(33, hardware=None),
    )
}


def test_the_loss_is_the_part_of_the_sms_without_a_block(ask: Ask) -> None:
    """33 of 132 SMs have a block: three quarters of 1000 are lost at most."""
    finding = only_finding(ask("kernels.grid", grids(33)))
    found = figures(finding)
    assert finding.recoverable_ns == found["lost to grids with fewer blocks than SMs"] == 750
    assert found["lost to tail waves"] == 0
    assert finding.share == 0.75
    assert (finding.severity, finding.confidence) == ("critical", "medium")
    assert "scan has 33 blocks for 132 SMs: 99 SMs cannot take part" in finding.claim


def test_a_block_for_each_sm_is_enough(ask: Ask) -> None:
    assert [type(answer) for answer in ask("kernels.grid", grids(SMS))] == [Clear]


def test_a_last_wave_that_is_nearly_empty_costs_up_to_half(ask: Ask) -> None:
    """One block more than fits at once: two waves for 2,113 of 4,224 slots."""
    finding = only_finding(ask("kernels.grid", grids(CAPACITY + 1)))
    found = figures(finding)
    lost_ns = int(1000 * (1 - (CAPACITY + 1) / (2 * CAPACITY)))
    assert finding.recoverable_ns == found["lost to tail waves"] == lost_ns
    assert found["capacity"] == CAPACITY
    assert (finding.severity, finding.confidence) == ("warning", "low")
    assert "the last of 2 waves has 1." in finding.claim


@pytest.mark.parametrize(
    ("blocks", "is_blamed"),
    [
        (3 * CAPACITY + 1, True),  # 4 waves, a quarter lost
        (5 * CAPACITY + 1, False),  # 6 waves, a sixth lost
        (CAPACITY + SMS, False),  # sized for the device
        (2 * CAPACITY, False),  # no tail
        (2 * CAPACITY - 1, False),  # hardly a tail
    ],
)
def test_which_tails_are_blamed(ask: Ask, blocks: int, is_blamed: bool) -> None:
    answers = ask("kernels.grid", grids(blocks))
    assert (not any(isinstance(answer, Clear) for answer in answers)) == is_blamed


def test_sms_that_another_kernel_uses_are_not_idle(ask: Ask) -> None:
    finding = only_finding(ask("kernels.grid", grids(33, beside=True)))
    assert finding.recoverable_ns == 375
    assert finding.extent.measure_ns == 500


def test_communication_uses_few_sms_on_purpose(ask: Ask) -> None:
    assert [type(a) for a in ask("kernels.grid", grids(8, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL"))] == [Clear]


def test_without_a_capability_grids_are_judged_and_tails_not(ask: Ask) -> None:
    unknown = {**H100, "computeMajor": 99}
    tail = ask("kernels.grid", grids(CAPACITY + 1, hardware=unknown))
    assert [type(answer) for answer in tail] == [CannotTell, Clear]
    assert only_finding(ask("kernels.grid", grids(33, hardware=unknown))).recoverable_ns == 750


def test_a_part_of_the_sms_that_is_not_known_tells_nothing(ask: Ask) -> None:
    export = grids(33)
    export.process(100).gpu().describe_context(is_green=True)
    (answer,) = ask("kernels.grid", export)
    assert isinstance(answer, CannotTell)
    assert "green context" in answer.because
