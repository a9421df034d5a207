"""Kernels that take much of the time."""

from __future__ import annotations

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Analyse, Ask, Query, ThreeCases, figures, only_finding
from tests.rules.scenes import H100, Scene, fed, too_short


def many_kernels(n: int) -> NsysExport:
    """n kernels of different names, each an n-th of the window."""
    scene = Scene()
    for i in range(n):
        scene.gpu.kernel(100 * i, 100 * i + 100, name=f"kernel_{chr(ord('a') + i)}")
    return scene.export


CASES = {
    "kernels.hot": ThreeCases(
        fires=lambda: fed().export,
        clear=lambda: many_kernels(11),
        untold=lambda: too_short().export,
    )
}


def two_kernels() -> NsysExport:
    """gemm: five launches of 60, 70, 80, 90, 100. relu: five of 20, beside the last gemm on another stream."""
    scene = Scene()
    start = 0
    for duration in (60, 70, 80, 90, 100):
        scene.gpu.kernel(start, start + duration, "gemm")
        start += duration
    for _ in range(5):
        scene.gpu.kernel(start - 30, start - 10, "relu", streamId=13)
    return scene.export


def test_the_largest_kernel(ask: Ask) -> None:
    finding = only_finding(ask("kernels.hot", two_kernels()))
    found = figures(finding)
    assert finding.subject.kernel == "gemm"
    assert (found["launches"], found["total"], found["median"], found["longest"]) == (5, 400, 80, 100)
    assert finding.share == 1.0
    assert (finding.severity, finding.recoverable_ns) == ("info", None)


def test_a_kernel_that_overlaps_itself_takes_its_union_of_the_window(report_on: Analyse) -> None:
    gemm, relu = report_on(two_kernels()).kernels
    assert (gemm.total_ns, relu.total_ns) == (400, 100)
    assert gemm.share_of_kernel_time == pytest.approx(0.8)
    assert relu.share_of_window == pytest.approx(20 / 400)


def test_the_largest_is_the_one_that_covers_most_time(ask: Ask) -> None:
    """Nine launches side by side take 900 together, but only 100 of the window."""
    scene = Scene()
    for stream in range(9):
        scene.gpu.kernel(0, 100, "wide", streamId=20 + stream)
    scene.gpu.kernel(100, 190, "long")
    scene.gpu.kernel(190, 280, "long")
    finding = only_finding(ask("kernels.hot", scene.export))
    assert finding.subject.kernel == "long"
    assert finding.share == pytest.approx(180 / 280)


def test_a_kernel_that_may_be_waiting_for_other_ranks_is_not_the_one(ask: Ask) -> None:
    scene = Scene()
    for i in range(10):
        scene.gpu.kernel(100 * i, 100 * i + 80, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")
        scene.gpu.kernel(100 * i + 80, 100 * i + 100, "gemm")
    assert only_finding(ask("kernels.hot", scene.export)).subject.kernel == "gemm"


def test_a_run_that_only_communicates_has_no_hot_kernel(ask: Ask) -> None:
    scene = Scene()
    for i in range(10):
        scene.gpu.kernel(100 * i, 100 * i + 80, "ncclDevKernel_AllReduce_Sum_f32_RING_LL")
    (answer,) = ask("kernels.hot", scene.export)
    assert isinstance(answer, Clear)


def test_amd_has_a_profiler_of_its_own(ask: Ask) -> None:
    scene = Scene()
    for i in range(10):
        correlation = scene.main.call("hipLaunchKernel", 100 * i - 5, 100 * i)
        scene.gpu.kernel(100 * i, 100 * i + 100, "Cijk_Ailk; rm", correlation)
    (command,) = only_finding(ask("kernels.hot", scene.export)).next
    assert command == "rocprof-compute profile -n hot -k Cijk_Ailk -- YOUR COMMAND"


def test_the_launches_can_be_looked_at(ask: Ask, query: Query) -> None:
    export = two_kernels()
    evidence = only_finding(ask("kernels.hot", export)).evidence[0]
    assert sorted(row[-1] for row in query(export, evidence)) == [60, 70, 80, 90, 100]


def test_a_timeline_cannot_tell_how_good_a_kernel_is(ask: Ask) -> None:
    answers = ask("kernels.hot", two_kernels())
    assert any(isinstance(a, CannotTell) and "a timeline holds no counters" in a.because for a in answers)


def test_what_to_run_next_is_safe_to_paste(ask: Ask) -> None:
    scene = Scene()
    for i in range(10):
        scene.gpu.kernel(100 * i, 100 * i + 100, name="evil'; rm -rf $HOME #")
    (command,) = only_finding(ask("kernels.hot", scene.export)).next
    assert "--kernel-name regex:evil.rm.rf.HOME." in command


def test_the_occupancy_of_a_described_device_is_told(ask: Ask) -> None:
    scene = Scene(H100)
    for i in range(10):
        scene.gpu.kernel(100 * i, 100 * i + 100, blockX=64, blockY=1, blockZ=1, registersPerThread=128)
    evidence = {each.label: each for each in only_finding(ask("kernels.hot", scene.export)).evidence}
    assert evidence["theoretical occupancy"].value == 0.25
    assert "limited by registers" in evidence["theoretical occupancy"].formula
    assert "theoretical occupancy" not in figures(only_finding(ask("kernels.hot", two_kernels())))
