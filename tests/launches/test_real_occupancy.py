"""The occupancy of every launch of the real reports against what Nsight Compute says of it, limit by limit.

Reports also hold curves: the warps that would fit with other registers, block sizes, shared memory or barriers. Every
point of them is a calculation of NVIDIA's own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.launches.kernel import ProfiledKernel, Untold, profiled_kernels
from diag.launches.occupancy import LaunchOccupancy, occupancy_of
from diag.model.ceilings import arithmetic
from diag.model.occupancy import Block, allocated_registers, allocated_shared_bytes, theoretical_occupancy
from diag.model.throughput import derived_peaks
from diag.store.case import Case

REPORTS = os.environ.get("DIAG_REAL_REPORTS")
pytestmark = pytest.mark.skipif(REPORTS is None, reason="DIAG_REAL_REPORTS names no folder of real reports")

FOLDER = Path(REPORTS or "no-reports") / "ncu"

LAUNCHES = {
    "a100-selfjoin-14launches": 14,
    "a100-selfjoin-2020.3": 4,
    "a100-selfjoin-full": 4,
    "a100-selfjoin-higgs": 0,  # 1 in all: it failed while it was profiled, and has no launch metrics
    "a10g-esmm-basic": 11,
    "a10g-esmm-no-rules": 12,
    "a10g-esmm-small": 5,  # 6 in all: the last one failed
    "cuda-course": 2,
    "gh200-nuclear-fast": 1,
}
"""Launches that have metrics of their occupancy."""
each_report = pytest.mark.parametrize("report", LAUNCHES)

Curve = Mapping[int, float]
"""Warps on an SM by registers per thread, threads per block, bytes of shared memory, or barriers."""


@cache
def launches(report: str) -> list[tuple[ProfiledKernel, LaunchOccupancy, Mapping[str, Any], Mapping[str, Curve]]]:
    """Those with metrics of their occupancy: ours, ncu's metrics, ncu's curves."""
    with open_inputs([FOLDER / f"{report}.ncu-rep"], ImportOptions(use_cache=False)) as case:
        return list(_launches(case))


def _launches(case: Case) -> Iterator[tuple[ProfiledKernel, LaunchOccupancy, Mapping[str, Any], Mapping[str, Curve]]]:
    (source,) = case.sources
    for kernel in profiled_kernels(case, source.id):
        for alone in kernel.one_by_one():
            ours = occupancy_of(alone)
            if "launch__occupancy_limit_registers" not in alone.metrics:
                assert isinstance(ours, Untold)
                continue
            assert isinstance(ours, LaunchOccupancy), ours
            curves: dict[str, dict[int, float]] = {}
            for name, key, value in case.db.execute(_CURVES, (alone.launch.id,)):
                curves.setdefault(name.removeprefix("launch__occupancy_per_"), {})[key] = value
            yield alone, ours, alone.metrics, curves


_CURVES = """
    SELECT m.name, i.key, i.value
      FROM launch_instance i JOIN metric m ON m.id = i.metric_id
     WHERE i.launch_id = ? AND m.name GLOB 'launch__occupancy_per_*'
"""


@each_report
def test_every_launch_that_has_them_is_compared(report: str) -> None:
    assert len(launches(report)) == LAUNCHES[report]


@each_report
def test_theoretical_occupancy(report: str) -> None:
    for kernel, ours, ncu, _ in launches(report):
        assert ours.theoretical.theoretical_pct == pytest.approx(ncu["sm__maximum_warps_per_active_cycle_pct"])
        assert ours.theoretical.warps_per_sm == ncu["sm__maximum_warps_avg_per_active_cycle"], kernel.launch.name


@each_report
def test_every_limit_and_so_the_limiters(report: str) -> None:
    """Ncu gives the limit of the SM where a kernel has no shared memory, and never a higher one for barriers."""
    for _, ours, ncu, _ in launches(report):
        limits = ours.theoretical.limits
        mine = {
            "blocks": limits.blocks,
            "registers": limits.registers,
            "shared_mem": limits.blocks if limits.shared_memory is None else limits.shared_memory,
            "warps": limits.warps,
        }
        if limits.barriers is not None:
            mine["barriers"] = min(limits.barriers, limits.blocks)
        theirs = {name: ncu[f"launch__occupancy_limit_{name}"] for name in mine}
        assert theirs == mine
        assert ("launch__occupancy_limit_barriers" in ncu) == ("barriers" in mine)
        least = min(theirs.values())
        assert {_NAMES.get(name, name) for name in theirs if theirs[name] == least} >= set(ours.theoretical.limiters)


_NAMES = {"shared_mem": "shared_memory"}


@each_report
def test_what_a_block_is_given(report: str) -> None:
    """Registers: of a block in older versions, of a thread in newer ones. Shared memory: rounded in newer ones."""
    for _, ours, ncu, _ in launches(report):
        registers = allocated_registers(ours.sm, ours.block)
        shared = allocated_shared_bytes(ours.sm, ours.block)
        assert ncu["launch__registers_per_thread_allocated"] in (registers, registers // (32 * ours.block.warps))
        assert shared - 127 <= ncu["launch__shared_mem_per_block_allocated"] <= shared
        assert ncu["launch__shared_mem_per_block"] == ours.block.shared_bytes + ours.sm.reserved_shared_per_block_bytes


@each_report
def test_waves(report: str) -> None:
    for _, ours, ncu, _ in launches(report):
        assert ours.waves == pytest.approx(ncu["launch__waves_per_multiprocessor"], rel=1e-9)


@each_report
def test_no_kernel_achieves_more_than_fits(report: str) -> None:
    for kernel, ours, ncu, _ in launches(report):
        if (achieved := ncu.get("sm__warps_active.avg.pct_of_peak_sustained_active")) is not None:
            assert 0 < achieved <= ours.theoretical.theoretical_pct + 0.01, kernel.launch.name


@each_report
def test_every_point_of_every_curve(report: str) -> None:
    for _, ours, _, curves in launches(report):
        assert len(curves) >= 3
        for name, curve in curves.items():
            points = {x: warps for x, warps in curve.items() if x <= MOST[name]}
            assert len(points) > 50
            mine = {x: warps_that_fit(ours, with_other(ours, name, x)) for x in points}
            assert mine == points, name


def test_that_is_said_of_thousands_of_points() -> None:
    curves = [(name, curve) for report in LAUNCHES for *_, them in launches(report) for name, curve in them.items()]
    assert sum(x <= MOST[name] for name, curve in curves for x in curve) == 22_219


MOST = {"register_count": 255, "block_size": 1024, "shared_mem_size": 49152, "barrier_count": 64}
"""Curves go on behind what a block can have: to 256 registers, and with shared memory that must be asked for."""


def with_other(ours: LaunchOccupancy, name: str, x: int) -> Block:
    match name:
        case "register_count":
            return replace(ours.block, registers_per_thread=x)
        case "block_size":
            return replace(ours.block, threads=x)
        case "shared_mem_size":
            # The system's part is in the size that ncu gives.
            return replace(ours.block, shared_bytes=max(0, x - ours.sm.reserved_shared_per_block_bytes))
        case _:
            return replace(ours.block, barriers=x)


def warps_that_fit(ours: LaunchOccupancy, block: Block) -> int:
    told = theoretical_occupancy(ours.sm, block)
    return told.warps_per_sm if told else 0


def test_the_units_of_an_a100_are_those_that_its_reports_count() -> None:
    """`peak_sustained` of FP32 and FP64 multiply-adds is what all SMs do per cycle."""
    for report in ("a100-selfjoin-14launches", "a100-selfjoin-full"):
        for kernel, _, ncu, _ in launches(report):
            peaks = derived_peaks(kernel.launch.gpu, 1.0)
            for metric, key in (("dfma", "fp64"), ("ffma", "fp32")):
                per_cycle = ncu[f"sm__sass_thread_inst_executed_op_{metric}_pred_on.sum.peak_sustained"]
                assert peaks[arithmetic(key)].per_s == 2 * per_cycle
