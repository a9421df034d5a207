"""Kernels of a profile found in a timeline of the same program, and how sure that is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from diag.ingest.importer import ImportOptions, open_inputs
from diag.launches.kernel import Place, profiled_kernels
from diag.launches.placement import place_all
from diag.rules.analysis import analyse
from diag.rules.report import Report
from diag.store.case import Case
from diag.timeline.joined import traces_of
from tests.builders.ncu_report import KernelLaunch, NcuReport
from tests.rules.scenes import Scene

SM = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
MEMORY = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed"


def sizes_of(grid: int) -> dict[str, int]:
    return {"gridX": grid, "gridY": 1, "gridZ": 1, "blockX": 256, "blockY": 1, "blockZ": 1}


def run(*names: str, grid: int = 1024) -> Scene:
    """Kernels of 100 ns, one after another, each followed by as long a gap."""
    scene = Scene()
    for at, name in enumerate(names):
        scene.gpu.kernel(200 * at, 200 * at + 100, name, **sizes_of(grid))
    return scene


def profile(*names: str, **launch: Any) -> NcuReport:
    metrics = {"gpu__time_duration.sum": 1000.0, SM: 50.0, MEMORY: 40.0}
    return NcuReport([KernelLaunch(metrics, name, **launch) for name in names])


@contextmanager
def joined(scene: Scene, report: NcuReport, folder: Path) -> Iterator[Case]:
    timeline, profiled = scene.export.write(folder / "run.sqlite"), report.write(folder / "kernels.ncu-rep")
    with open_inputs([timeline, profiled], ImportOptions(use_cache=False)) as case:
        yield case


def places(scene: Scene, report: NcuReport, folder: Path) -> dict[str, Place | None]:
    with joined(scene, report, folder) as case:
        (source,) = (source for source in case.sources if not source.has_timeline)
        kernels = profiled_kernels(case, source.id)
        place_all(kernels, traces_of(case))
        return {kernel.launch.name: kernel.place for kernel in kernels}


def the(place: Place | None) -> Place:
    assert place is not None
    return place


LOOP: Sequence[str] = ["relu", "gemm"] * 6


def test_a_kernel_is_found_by_name_grid_and_block_in_its_order(tmp_path: Path) -> None:
    place = the(places(run(*LOOP), profile("relu", "gemm"), tmp_path)["gemm"])
    assert (place.count, place.total_ns, place.time.measure_ns) == (6, 600, 600)
    assert place.confidence == "high"


def test_launches_in_another_order_make_it_less_sure(tmp_path: Path) -> None:
    found = places(run("relu", *["gemm"] * 11), profile("gemm", "relu"), tmp_path)
    assert {the(place).confidence for place in found.values()} == {"medium"}


def test_another_grid_leaves_the_name_alone(tmp_path: Path) -> None:
    place = the(places(run(*LOOP, grid=7), profile("gemm"), tmp_path)["gemm"])
    assert place.confidence == "low"
    assert "name alone" in place.how


def test_a_full_name_that_is_spelt_differently_matches_by_the_short_one(tmp_path: Path) -> None:
    scene = Scene()
    for at in range(10):
        short = scene.export.string("gemm")
        scene.gpu.kernel(200 * at, 200 * at + 100, "void gemm<float>(float *)", shortName=short, **sizes_of(1024))
    place = the(places(scene, profile("gemm"), tmp_path)["gemm"])
    assert (place.count, place.confidence) == (10, "medium")


def test_what_the_timeline_does_not_have_has_no_place(tmp_path: Path) -> None:
    assert places(run(*LOOP), profile("softmax"), tmp_path) == {"softmax": None}


def report_of(scene: Scene, report: NcuReport, folder: Path) -> Report:
    with joined(scene, report, folder) as case:
        return analyse(case)


def test_what_can_be_won_is_the_headroom_of_the_profile_times_the_time_in_the_run(tmp_path: Path) -> None:
    """By the profile half is headroom; the run spends 600 of 2300 ns in the kernel, whatever the profile took."""
    found = report_of(run(*LOOP), profile("relu", "gemm"), tmp_path).findings
    (finding,) = (f for f in found if f.rule == "ncu.speed_of_light" and f.subject.kernel == "gemm")
    assert finding.recoverable_ns == 300
    assert finding.share == 300 / 2300
    assert finding.subject.window == (0, 2300)
    assert finding.extent.measure_ns == 600


def test_a_profile_alone_ranks_by_the_time_that_was_profiled(tmp_path: Path) -> None:
    path = profile("relu", "gemm").write(tmp_path / "kernels.ncu-rep")
    with open_inputs([path], ImportOptions(use_cache=False)) as case:
        findings = [f for f in analyse(case).findings if f.rule == "ncu.speed_of_light"]
    assert [(f.recoverable_ns, f.share, f.whole_ns) for f in findings] == [(500, 0.25, 2000)] * 2
    assert len({f.id for f in findings}) == 2
