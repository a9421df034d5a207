"""The occupancy of a launch: from what a report holds, or why it cannot be told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from diag.ingest.importer import ImportOptions, open_inputs
from diag.launches.kernel import Untold, profiled_kernels
from diag.launches.occupancy import LaunchOccupancy, occupancy_of
from diag.rules.analysis import analyse
from tests.builders.ncu_report import NcuReport

H100 = {"compute_capability_major": 9, "compute_capability_minor": 0, "multiprocessor_count": 132}
LAUNCH: Mapping[str, Any] = {
    "launch__registers_per_thread": 77,
    "launch__shared_mem_per_block_static": 16,
    "launch__shared_mem_per_block_dynamic": 2096,
    "launch__shared_mem_per_block_driver": 1024,
    "launch__shared_mem_config_size": 65536,
    "launch__barrier_count": 1,
}
"""What a GH200 ran: 6 blocks of 128 threads per SM by registers, 20 by shared memory, 16 by warps."""


def profile(metrics: Mapping[str, Any] = {}, blocks: int = 1320) -> NcuReport:
    report = NcuReport.of({**LAUNCH, **metrics}, grid=(blocks, 1, 1), block=(1, 128, 1))
    return replace(report, device="NVIDIA H100 80GB HBM3", attributes=H100)


def told_of(report: NcuReport, folder: Path, version: str | None = None) -> LaunchOccupancy | Untold:
    with open_inputs([report.write(folder / "k.ncu-rep")], ImportOptions(use_cache=False)) as case:
        case.db.execute("UPDATE source SET tool_version = ?", (version,))
        (kernel,) = profiled_kernels(case, case.sources[0].id)
        return occupancy_of(kernel)


def of(report: NcuReport, folder: Path, version: str | None = None) -> LaunchOccupancy:
    told = told_of(report, folder, version)
    assert isinstance(told, LaunchOccupancy), told
    return told


def why_not(report: NcuReport, folder: Path) -> str:
    told = told_of(report, folder)
    assert isinstance(told, Untold)
    return told.because


def test_what_fits_and_in_how_many_waves(tmp_path: Path) -> None:
    """132 SMs hold 6 blocks each, 792: 1,320 are 1.67 waves."""
    told = of(profile(), tmp_path)
    assert vars(told.theoretical.limits) == {
        "blocks": 32, "registers": 6, "shared_memory": 20, "warps": 16, "barriers": 64
    }  # fmt: skip
    assert (told.theoretical.limiters, told.theoretical.theoretical_pct) == (("registers",), 37.5)
    assert told.capacity == 792
    assert told.waves == pytest.approx(1320 / 792)


@pytest.mark.parametrize(
    ("version", "limit"),
    [("2020.3.1.0", 72), ("2021.2.2.0", 72), ("2021.3.0.0", 20), ("2022.3.0.0", 20), ("2025.2.1.0", 20), (None, 20)],
)
def test_old_versions_divide_all_of_the_shared_memory(version: str | None, limit: int, tmp_path: Path) -> None:
    """233,472 / 3,200 = 72; from the carve-out of 65,536 on 20."""
    assert of(profile(), tmp_path, version).theoretical.limits.shared_memory == limit


def test_barriers_may_be_what_bounds(tmp_path: Path) -> None:
    """64 barriers of an SM for blocks of 16: 4."""
    told = of(profile({"launch__barrier_count": 16}), tmp_path)
    assert (told.theoretical.limiters, told.theoretical.blocks_per_sm) == (("barriers",), 4)


CLUSTER = {"launch__cluster_dim_x": 2, "launch__cluster_dim_y": 2, "launch__cluster_dim_z": 1}


def test_clusters_that_fit_are_known_from_the_report_alone(tmp_path: Path) -> None:
    assert of(profile(CLUSTER), tmp_path).capacity is None
    assert of(profile({**CLUSTER, "launch__cluster_max_active": 0}), tmp_path).capacity is None
    assert of(profile({**CLUSTER, "launch__cluster_max_active": 190}), tmp_path).capacity == 760


def test_a_launch_may_have_a_part_of_the_sms(tmp_path: Path) -> None:
    assert of(profile({"launch__sm_count": 66}), tmp_path).waves == pytest.approx(2 * 1320 / 792)


@pytest.mark.parametrize("metric", list(LAUNCH)[:3])
def test_what_was_not_collected_is_named(metric: str, tmp_path: Path) -> None:
    (launch,) = profile().launches
    report = replace(
        profile(), launches=[replace(launch, metrics={k: v for k, v in launch.metrics.items() if k != metric})]
    )
    assert why_not(report, tmp_path) == f"{metric} was not collected (ncu --section LaunchStats)"


def test_without_limits_there_is_no_occupancy(tmp_path: Path) -> None:
    assert "compute capability" in why_not(replace(profile(), device="NVIDIA X", attributes={}), tmp_path)


def test_figures_that_cannot_be_have_none(tmp_path: Path) -> None:
    assert "does not fit" in why_not(profile({"launch__shared_mem_per_block_dynamic": 1 << 20}), tmp_path)


def test_the_report_has_it_for_each_launch(tmp_path: Path) -> None:
    achieved = {"sm__warps_active.avg.pct_of_peak_sustained_active": 30.0}
    with open_inputs([profile(achieved).write(tmp_path / "k.ncu-rep")], ImportOptions(use_cache=False)) as case:
        (row,) = analyse(case).launches
    assert row.occupancy is not None
    assert (row.occupancy.theoretical_pct, row.occupancy.achieved_pct) == (37.5, 30.0)
    assert row.occupancy.limiters == ("registers",)
    assert row.occupancy.limits["registers"] == 6
    assert row.occupancy.waves == pytest.approx(1320 / 792)
