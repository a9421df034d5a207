"""Launching that is too slow, or ahead of the device."""

from __future__ import annotations

from pathlib import Path

import pytest

from diag.rules.finding import CannotTell, Clear
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Analyse, Ask, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene, fed, starved

CASES = {
    "launch.bound": ThreeCases(
        fires=lambda: starved().export,
        clear=lambda: fed().export,
        untold=lambda: starved().export.drop("CUPTI_ACTIVITY_KIND_RUNTIME"),
    ),
    "launch.back_pressure": ThreeCases(
        fires=lambda: fed().export,
        clear=lambda: starved().export,
        untold=lambda: fed().export.drop("CUPTI_ACTIVITY_KIND_RUNTIME"),
    ),
}


def unlaunched() -> NsysExport:
    """Calls were captured, but none of them launched anything."""
    export = starved().export
    for row in export.rows["CUPTI_ACTIVITY_KIND_KERNEL"]:
        row["correlationId"] = None
    return export


def fed_with_a_late_phase(late_ns: int) -> NsysExport:
    """20 kernels of 100; between the first and the second half the host is late by `late_ns`, else it is ahead."""
    scene = Scene()
    for i in range(20):
        start = 100 * i + (late_ns if i >= 10 else 0)
        called = start if i == 10 else 2 * i - 50 if i < 10 else start - 80
        scene.main.launch(scene.gpu, called=called, start=start, end=start + 100)
    scene.main.overhead("Command buffer full (CUDA)", 200, 300)
    return scene.export


def test_gaps_paced_by_launching(ask: Ask) -> None:
    finding = only_finding(ask("launch.bound", starved().export))
    found = figures(finding)
    assert found["launches into an empty queue"] == 1.0
    assert found["time between launches"] == 100
    assert found["kernel"] == 80
    assert found["gaps paced by launching"] == 9 * 20
    assert finding.recoverable_ns == 180
    assert finding.share == pytest.approx(180 / 980)


def test_a_gap_much_longer_than_the_launch_period_is_not_paced_by_launching(ask: Ask) -> None:
    scene = starved()
    scene.main.launch(scene.gpu, called=980 + 1500, start=980 + 1505, end=980 + 1585)
    finding = only_finding(ask("launch.bound", scene.export))
    assert figures(finding)["gaps paced by launching"] == 180
    assert finding.share == pytest.approx(180 / (980 + 1585))


def test_slow_host_work_between_two_kernels_is_not_launch_cost(ask: Ask) -> None:
    """Every launch finds the queue empty, but the host does something else for 5000 before each."""
    scene = Scene()
    for i in range(10):
        scene.main.launch(scene.gpu, called=5100 * i - 5, start=5100 * i, end=5100 * i + 80)
    (answer,) = ask("launch.bound", scene.export)
    assert isinstance(answer, Clear)


def test_waiting_for_the_device_is_not_launch_cost(ask: Ask) -> None:
    """The whole of each gap but 5 is spent inside a synchronising call."""
    scene = starved()
    for i in range(10):
        scene.main.call("cudaDeviceSynchronize_v3020", 100 * i + 20, 100 * i + 95)
    finding = only_finding(ask("launch.bound", scene.export))
    assert figures(finding)["gaps paced by launching"] == 9 * 5
    assert figures(finding)["gaps that begin inside a synchronisation"] == 1.0
    assert finding.next[0].startswith("Drop the synchronisation first: 100.0 % of these gaps")


def test_the_verdict_is_launching_where_it_explains_the_idle_time(report_on: Analyse) -> None:
    report = report_on(starved().export)
    assert report.verdict.title.startswith("Launch-bound")
    assert {finding.rule for finding in report.findings} >= {"idle.gpu", "launch.bound"}


def test_one_thread_may_be_slow_while_another_one_is_not_counted(ask: Ask) -> None:
    """Periods are those of a thread's own launches, not of the mixture."""
    scene = starved()
    other = scene.main.process.thread(101)
    for i in range(10):
        other.launch(scene.gpu, called=100 * i + 45, start=100 * i + 50, end=100 * i + 60)
    assert figures(only_finding(ask("launch.bound", scene.export)))["time between launches"] == 100


def test_queued_launches(ask: Ask) -> None:
    finding = only_finding(ask("launch.back_pressure", fed().export))
    found = figures(finding)
    assert found["launches into a busy queue"] == 0.9
    assert found["command buffer full"] == 0
    assert (finding.severity, finding.confidence, finding.recoverable_ns) == ("info", "medium", None)


def test_full_command_buffers_are_counted_and_united(ask: Ask) -> None:
    scene = fed()
    other = scene.main.process.thread(101)
    scene.main.overhead("Command buffer full (CUDA)", 100, 200)
    other.overhead("Command buffer full (CUDA)", 150, 250)
    finding = only_finding(ask("launch.back_pressure", scene.export))
    found = figures(finding)
    assert found["command buffer full"] == 2
    assert found["waiting to launch"] == 150
    assert finding.confidence == "high"


@pytest.mark.parametrize(("late_ns", "answer"), [(20, "Finding"), (41, "Clear")])
def test_a_host_that_is_late_is_not_ahead_however_full_its_queue(ask: Ask, late_ns: int, answer: str) -> None:
    """The window is 2000 + late_ns, and two hundredths of it are the limit."""
    answers = ask("launch.back_pressure", fed_with_a_late_phase(late_ns))
    assert [type(a).__name__ for a in answers] == [answer]


@pytest.mark.parametrize("rule_id", CASES)
def test_without_any_launch_nothing_can_be_told(ask: Ask, rule_id: str) -> None:
    (answer,) = ask(rule_id, unlaunched())
    assert isinstance(answer, CannotTell)
    assert answer.because == "0 launching calls in the window; 10 are needed"


def test_kernels_of_a_graph_share_its_launch(ask: Ask) -> None:
    """One call, ten kernels behind it: that nine of them queued says nothing about the host."""
    scene = Scene()
    correlation = scene.main.call("cudaGraphLaunch_v10000", -10, -5)
    for i in range(10):
        scene.gpu.kernel(100 * i, 100 * i + 95, correlation=correlation, graphNodeId=i + 1)
    for rule_id in CASES:
        (answer,) = ask(rule_id, scene.export)
        assert isinstance(answer, CannotTell)
        assert answer.because == "1 launching call in the window; 10 are needed"


def test_the_verdict_excludes_what_is_shown_not_to_be_the_cause(report_on: Analyse) -> None:
    scene = Scene()
    for i in range(10):
        correlation = scene.main.call("cudaMemcpyAsync_v3020", 2 * i - 50, 2 * i - 49)
        scene.gpu.copy(100 * i, 100 * i + 60, 6 << 20, correlation=correlation)
        scene.main.launch(scene.gpu, called=2 * i - 48, start=100 * i + 60, end=100 * i + 100)
    verdict = report_on(scene.export).verdict
    assert verdict.title.startswith("Transfer-bound: pinned host→device at ")
    assert verdict.title.endswith("; not idle, not CPU-bound")


def test_a_raised_threshold_does_not_make_a_device_busy(report_on: Analyse, tmp_path: Path) -> None:
    changed = tmp_path / "t.toml"
    changed.write_text('["idle.gpu"]\nshare = 0.9\n')
    report = report_on(starved().export, thresholds=changed)
    assert report.verdict.title.startswith("Launch-bound")
    assert "not idle" not in report.verdict.title


def test_time_between_launches_is_not_measured_across_the_parts_of_a_window(report_on: Analyse) -> None:
    """Twelve bursts of two launches, 100 apart, every 10000: the holes in between are not the host's pace."""
    scene = Scene()
    for i in range(12):
        for at in (10_000 * i, 10_000 * i + 100):
            scene.main.launch(scene.gpu, called=at - 5, start=at, end=at + 80)
        scene.main.range("burst", 10_000 * i - 10, 10_000 * i + 180)
    report = report_on(scene.export, range_name="burst")
    (finding,) = (finding for finding in report.findings if finding.rule == "launch.bound")
    assert figures(finding)["time between launches"] == 100


def test_a_full_command_buffer_says_nothing_about_a_device_on_which_nothing_queues(ask: Ask) -> None:
    scene = Scene()
    for i in range(20):
        scene.main.launch(scene.gpu, called=100 * i, start=100 * i, end=100 * i + 100)
    scene.main.overhead("Command buffer full (CUDA)", 200, 300)
    (answer,) = ask("launch.back_pressure", scene.export)
    assert isinstance(answer, Clear)


def test_graph_launches_are_not_told_to_use_graphs(ask: Ask) -> None:
    scene = Scene()
    for i in range(20):
        correlation = scene.main.call("cudaGraphLaunch_v10000", 100 * i - 5, 100 * i - 4)
        for node in range(2):
            scene.gpu.kernel(
                100 * i + 40 * node, 100 * i + 40 * node + 40, correlation=correlation, graphNodeId=node + 1
            )
    finding = only_finding(ask("launch.bound", scene.export))
    assert any("into one graph" in step for step in finding.next)
