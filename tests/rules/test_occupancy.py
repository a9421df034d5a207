"""Low theoretical occupancy, and local memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Analyse, Ask, Query, ThreeCases, figures, only_finding
from tests.rules.scenes import H100, Scene, starved

MANY = 132 * 32 + 1  # blocks: one more than an H100 ever holds
WIDE = {"blockX": 64, "registersPerThread": 128}
"""4 warps in each quarter of the SM by registers: 8 blocks of 2 warps, a quarter of 64."""


def launches(
    configuration: Mapping[str, int], hardware: Mapping[str, Any] | None = H100, name: str = "stencil"
) -> NsysExport:
    """Ten launches of 90 and one small kernel of 100 of another name; never idle."""
    scene = Scene(hardware)
    for i in range(10):
        scene.gpu.kernel(90 * i, 90 * i + 90, name, **_whole(configuration))
    scene.gpu.kernel(900, 1000, "other", **_whole({"blockX": 128, "registersPerThread": 16}))
    return scene.export


def _whole(configuration: Mapping[str, int]) -> dict[str, int]:
    ones = dict.fromkeys(("gridY", "gridZ", "blockY", "blockZ"), 1)
    return {**ones, "gridX": MANY, **configuration}


LOW = {"blockX": 64, "registersPerThread": 136}  # 3 warps in each quarter: 6 blocks of 2 warps: 12 of 64

CASES = {
    "kernels.occupancy": ThreeCases(
        fires=lambda: launches(LOW),
        clear=lambda: launches(WIDE),
        untold=lambda: launches(LOW, hardware=None),
    ),
    "kernels.local_memory": ThreeCases(
        fires=lambda: launches({"localMemoryPerThread": 40}),
        clear=lambda: launches({"localMemoryPerThread": 0}),
        untold=lambda: launches({"localMemoryPerThread": 40}).then(
            "ALTER TABLE CUPTI_ACTIVITY_KIND_KERNEL DROP COLUMN localMemoryPerThread"
        ),
    ),
}


def test_the_numbers_are_those_of_the_launch(ask: Ask) -> None:
    finding = only_finding(ask("kernels.occupancy", launches(LOW)))
    found = figures(finding)
    assert found["theoretical occupancy"] == 12 / 64
    assert (found["blocks per SM by registers"], found["blocks per SM by warps"]) == (6, 32)
    assert found["registers per thread"] == 136
    assert found["kernels of low occupancy"] == 900
    assert finding.subject.kernel == "stencil"


def test_low_occupancy_is_no_fault_and_has_no_bound(ask: Ask) -> None:
    finding = only_finding(ask("kernels.occupancy", launches(LOW)))
    assert (finding.severity, finding.recoverable_ns, finding.confidence) == ("info", None, "low")
    assert "can be right" in finding.claim


def test_what_would_raise_it_is_worked_out(ask: Ask) -> None:
    """7 blocks of 2 warps are 4 warps in a quarter: 16,384 / 4 / 32 = 128 registers."""
    (_, remedy) = only_finding(ask("kernels.occupancy", launches(LOW))).next
    assert remedy.startswith("7 blocks per SM fit with at most 128 registers per thread (now 136)")


def test_shared_memory_limits_too(ask: Ask) -> None:
    """120,000 + 1,024 bytes twice are more than 233,472: one block of 4 warps."""
    shared = {"blockX": 128, "registersPerThread": 32, "dynamicSharedMemory": 120_000, "sharedMemoryExecuted": 233_472}
    finding = only_finding(ask("kernels.occupancy", launches(shared)))
    assert figures(finding)["theoretical occupancy"] == 4 / 64
    assert "by shared memory" in finding.claim
    assert "115,712 bytes" in finding.next[1]  # 233,472 / 2 - 1,024


def test_a_small_carve_out_is_the_cause_only_if_a_larger_one_would_help(ask: Ask) -> None:
    shared = {"blockX": 128, "dynamicSharedMemory": 30_000, "sharedMemoryExecuted": 32 << 10}
    few_registers = only_finding(ask("kernels.occupancy", launches({**shared, "registersPerThread": 32})))
    assert "by the shared-memory carve-out" in few_registers.claim
    assert "Carveout" in few_registers.next[1]
    many_registers = {**shared, "blockX": 256, "registersPerThread": 255}  # 8 warps at most: one block, whatever else
    assert "by registers." in only_finding(ask("kernels.occupancy", launches(many_registers))).claim


@pytest.mark.parametrize("name", ["ampere_sgemm_128x64_nn", "flash_fwd_kernel", "void cudnn::cnn::dgrad_engine<float>"])
def test_kernels_made_for_few_warps_are_not_blamed(ask: Ask, name: str) -> None:
    answers = ask("kernels.occupancy", launches(LOW, name=name))
    assert [type(answer) for answer in answers] == [Clear]


def test_communication_is_not_blamed(ask: Ask) -> None:
    answers = ask("kernels.occupancy", launches(LOW, name="ncclDevKernel_AllReduce_Sum_f32_RING_LL"))
    assert [type(answer) for answer in answers] == [Clear]


def test_a_grid_that_fits_at_once_would_win_nothing_by_occupancy(ask: Ask) -> None:
    answers = ask("kernels.occupancy", launches({**LOW, "gridX": 132 * 6}))
    assert [type(answer) for answer in answers] == [Clear]


def test_launches_without_a_configuration_tell_nothing(ask: Ask) -> None:
    (answer,) = ask("kernels.occupancy", launches({}).then("UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET blockX = 0"))
    assert isinstance(answer, CannotTell)
    assert "not captured" in answer.because


def test_every_kernel_of_the_report_has_its_occupancy(report_on: Analyse) -> None:
    stencil, other = report_on(launches(LOW)).kernels
    assert stencil.occupancy is not None
    assert other.occupancy is not None
    assert stencil.occupancy.theoretical_pct == pytest.approx(100 * 12 / 64)
    assert stencil.occupancy.limits == {
        "blocks": 32, "registers": 6, "shared_memory": 228, "warps": 32, "barriers": None
    }  # fmt: skip
    assert list(stencil.occupancy.limiters) == ["registers"]
    assert other.occupancy.theoretical_pct == 100


def test_the_configuration_with_most_time_speaks_for_the_kernel(report_on: Analyse) -> None:
    scene = Scene(H100)
    for start in range(0, 900, 100):
        scene.gpu.kernel(start, start + 60, "stencil", **_whole(LOW))
        scene.gpu.kernel(start + 60, start + 100, "stencil", **_whole(WIDE))
    scene.gpu.kernel(900, 1000, "stencil", **_whole({**WIDE, "gridX": 7}))
    (row,) = report_on(scene.export).kernels
    assert row.occupancy is not None
    assert (row.occupancy.theoretical_pct, row.occupancy.configurations) == (18.75, 2)


def test_a_device_that_is_not_described_has_none(report_on: Analyse) -> None:
    assert all(row.occupancy is None for row in report_on(launches(LOW, hardware=None)).kernels)


@pytest.mark.parametrize("value", [-(2**62), 2**62, -1, 2**31])
def test_figures_that_cannot_be_give_no_occupancy(report_on: Analyse, value: int) -> None:
    damaged = launches(LOW).then(
        f"UPDATE CUPTI_ACTIVITY_KIND_KERNEL SET gridX = {value}, gridY = {value}, gridZ = {value}, blockX = {value}, "
        f"blockY = {value}, registersPerThread = {value}, dynamicSharedMemory = {value}, staticSharedMemory = {value}"
    )
    assert all(row.occupancy is None for row in report_on(damaged).kernels)


# ---- local memory --------------------------------------------------------------------------------------------------


def test_local_memory_is_called_a_spill_or_an_array(ask: Ask, query: Query) -> None:
    export = launches({"localMemoryPerThread": 40})
    finding = only_finding(ask("kernels.local_memory", export))
    assert finding.title.startswith("Spill or local array: stencil has 40 B")
    assert (finding.severity, finding.recoverable_ns, finding.share) == ("info", None, 0.9)
    assert any("-Xptxas -v" in step for step in finding.next)
    assert any("LDL|STL" in step for step in finding.next)
    assert len(query(export, finding.evidence[0])) == 10


def test_local_memory_of_a_rare_kernel_is_no_matter(ask: Ask) -> None:
    scene = Scene(H100)
    for i in range(10):
        scene.gpu.kernel(100 * i, 100 * i + 100, "stencil")
    scene.gpu.kernel(1000, 1100, "sort", localMemoryPerThread=8)
    assert [type(answer) for answer in ask("kernels.local_memory", scene.export)] == [Clear]


@pytest.mark.parametrize("rule_id", ["kernels.occupancy", "kernels.grid", "kernels.simt_gemm"])
def test_of_an_amd_device_no_figures_of_nvidia_are_missed(ask: Ask, rule_id: str) -> None:
    scene = starved()
    scene.main.call("hipLaunchKernel", 0, 1)
    (answer,) = ask(rule_id, scene.export)
    assert isinstance(answer, CannotTell)
    assert "AMD" in answer.because
