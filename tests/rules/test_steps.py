"""Steps that take longer than others."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from diag.rules.finding import CannotTell
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, ThreeCases, figures, only_finding
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
        fires=lambda: stepping([100] * 9 + [300]),
        clear=lambda: stepping([100] * 10),
        untold=lambda: stepping([100] * 4),
    )
}


def test_what_slow_steps_take_beyond_the_median(ask: Ask) -> None:
    finding = only_finding(ask("steps.variance", stepping([100, 100, 100, 300, 100, 100, 150, 110, 100])))
    found = figures(finding)
    assert (found["steps"], found["median step"], found["slow steps"]) == (9, 100, 2)
    assert found["beyond the median"] == finding.recoverable_ns == 200 + 50
    assert finding.share == pytest.approx(250 / 1160)
    assert finding.subject.range == "step #"
    assert "'step 3'" in finding.claim


def test_steps_of_the_profiler_are_steps_by_definition(ask: Ask) -> None:
    export = stepping([100] * 9 + [300], name="ProfilerStep#")
    assert only_finding(ask("steps.variance", export)).subject.range is not None


def test_ranges_that_do_not_fill_the_time_are_no_steps(ask: Ask) -> None:
    scene = Scene()
    for start in range(0, 1000, 100):
        scene.main.range("short", start, start + 10)
    (answer,) = ask("steps.variance", scene.export)
    assert isinstance(answer, CannotTell)


def test_without_ranges_there_are_no_steps(ask: Ask) -> None:
    (answer,) = ask("steps.variance", stepping([100] * 9 + [300]).drop("NVTX_EVENTS").then(KEEP_SOMETHING))
    assert isinstance(answer, CannotTell)
    assert "were not captured" in answer.because


KEEP_SOMETHING = "CREATE TABLE OSRT_API (start INTEGER, end INTEGER, globalTid INTEGER, nameId INTEGER)"
