"""Steps that take longer than others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from diag.rules.finding import CannotTell
from diag.timeline.intervals import Intervals
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, AskWithin, Query, ThreeCases, figures, only_finding
from tests.rules.scenes import Scene


def stepping(durations: Sequence[int], name: str = "step") -> NsysExport:
    """Steps that follow each other with a pause of 10, and inside each a range that is no step."""
    scene = Scene()
    start = 0
    for number, duration in enumerate(durations):
        scene.main.range(f"{name} {number}", start, start + duration)
        scene.main.range("forward", start, start + duration // 2)
        start += duration + 10
    return scene.export


CASES = {
    "steps.variance": ThreeCases(
        fires=lambda: stepping([100] * 8 + [300, 100]),
        clear=lambda: stepping([300, *[100] * 8, 300]),  # the capture may have cut or slowed the first and the last
        untold=lambda: stepping([100] * 4),
    )
}


def test_what_slow_steps_take_beyond_the_median(ask: Ask) -> None:
    finding = only_finding(ask("steps.variance", stepping([100, 100, 100, 300, 100, 100, 150, 110, 100])))
    found = figures(finding)
    assert (found["steps"], found["median step"], found["slow steps"]) == (7, 100, 2)
    assert found["beyond the median"] == finding.recoverable_ns == 200 + 50
    assert finding.share == pytest.approx(250 / 960)
    assert finding.subject.range == "step #"
    assert "'step 3'" in finding.claim


def test_steps_of_the_profiler_are_steps_by_definition(ask: Ask) -> None:
    """Also where most of the thread's time lies before them."""
    scene = Scene()
    scene.main.range("start up", -9000, 0)
    for i, duration in enumerate([100, 100, 100, 190, 100]):
        scene.main.range(f"ProfilerStep#{i}", 200 * i, 200 * i + duration)
    assert only_finding(ask("steps.variance", scene.export)).subject.range == "ProfilerStep#"


def test_a_phase_is_no_step(ask: Ask) -> None:
    """The range covers 79 % of the thread's time."""
    scene = Scene()
    for start in range(0, 1000, 100):
        scene.main.range("phase", start, start + (60 if start else 79))
    scene.main.range("end", 990, 1000)
    (answer,) = ask("steps.variance", scene.export)
    assert isinstance(answer, CannotTell)


def test_in_a_part_of_the_trace_only_whole_steps_count(ask_within: AskWithin) -> None:
    """Steps start every 110; of 0 to 9, the scope holds 2 to 6, of which 5 is slow, and cuts 1 and 7."""
    export = stepping([100] * 5 + [300] + [100] * 4)
    finding = only_finding(ask_within("steps.variance", export, Intervals.single(115, 1000)))
    assert figures(finding)["steps"] == 5
    assert finding.subject.window == (220, 960)
    (answer,) = ask_within("steps.variance", export, Intervals.single(115, 450))
    assert isinstance(answer, CannotTell)


def test_the_steps_can_be_looked_at(ask: Ask, query: Query) -> None:
    export = stepping([100] * 8 + [300, 100])
    evidence = only_finding(ask("steps.variance", export)).evidence[0]
    assert [name for name, *_ in query(export, evidence)] == [f"step {i}" for i in range(10)]


def test_ranges_that_do_not_fill_the_time_are_no_steps(ask: Ask) -> None:
    scene = Scene()
    for start in range(0, 1000, 100):
        scene.main.range("short", start, start + 10)
    (answer,) = ask("steps.variance", scene.export)
    assert isinstance(answer, CannotTell)


def test_without_ranges_there_are_no_steps(ask: Ask) -> None:
    (answer,) = ask("steps.variance", stepping([100] * 8 + [300, 100]).drop("NVTX_EVENTS").then(KEEP_SOMETHING))
    assert isinstance(answer, CannotTell)
    assert "were not captured" in answer.because


KEEP_SOMETHING = "CREATE TABLE OSRT_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER)"
