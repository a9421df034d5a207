"""Tables of a report: kernels and ranges, cut to the part of the trace that was asked for."""

from __future__ import annotations

from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Analyse
from tests.rules.scenes import Scene


def two_steps() -> NsysExport:
    """Steps 0 to 100 and 200 to 300; each launches at its start a kernel of 100 that starts 50 later."""
    scene = Scene()
    for start in (0, 200):
        scene.main.range("step", start, start + 100)
        scene.main.launch(scene.gpu, called=start, start=start + 50, end=start + 150)
    return scene.export


def test_without_a_scope_everything_counts(report_on: Analyse) -> None:
    report = report_on(two_steps())
    ((kernel,), (step,)) = report.kernels, report.ranges
    assert (kernel.count, kernel.total_ns, kernel.share_of_window) == (2, 200, 200 / 300)
    assert (step.count, step.host_ns, step.gpu_ns, step.gpu_sum_ns) == (2, 200, 200, 200)


def test_a_window_cuts_kernels_and_ranges(report_on: Analyse) -> None:
    """From 80 to 220: 70 of the first kernel, 20 of each step, and 70 in which nothing runs."""
    report = report_on(two_steps(), window="80ns:220ns")
    ((kernel,), (step,)) = report.kernels, report.ranges
    assert (kernel.count, kernel.total_ns, kernel.min_ns, kernel.max_ns) == (1, 70, 70, 70)
    assert kernel.share_of_window == 0.5
    assert (step.count, step.host_ns, step.gpu_ns, step.gpu_sum_ns) == (2, 20 + 20, 70, 70)


def test_a_range_that_does_not_reach_into_the_window_is_not_listed(report_on: Analyse) -> None:
    """The first kernel still runs at 110, but its step is over."""
    assert report_on(two_steps(), window="110ns:190ns").ranges == []


def test_a_window_of_several_parts_cuts_each(report_on: Analyse) -> None:
    """Inside the two steps lie 50 of each kernel."""
    report = report_on(two_steps(), range_name="step")
    ((kernel,), (step,)) = report.kernels, report.ranges
    assert (kernel.count, kernel.total_ns, kernel.max_ns) == (2, 100, 50)
    assert (step.count, step.host_ns, step.gpu_ns, step.gpu_sum_ns) == (2, 200, 100, 100)
