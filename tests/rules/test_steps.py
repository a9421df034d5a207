"""Steps that take longer than others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest

from diag.rules.finding import CannotTell
from diag.timeline.intervals import Intervals
from tests.builders.nsys_export import NsysExport
from tests.rules.asking import Ask, AskWithin, Query, ThreeCases, figures, only_finding
from tests.rules.scenes import US, Scene


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


def slow_for(cause: Callable[[Scene, int, int], None] | None) -> NsysExport:
    """Nine steps of 100 us with kernels of 60 and 1 us each; step 4 takes 100 us more, for a cause."""
    scene = Scene()
    start = 0
    for number in range(9):
        extra = 100 * US if number == 4 else 0
        end = start + 100 * US + extra
        scene.main.range(f"step {number}", start, end)
        scene.main.range("forward", start, end)
        scene.main.range("load", start, start + 5 * US + extra)
        scene.main.launch(scene.gpu, start + 10 * US + extra, start + 20 * US + extra, start + 80 * US + extra)
        scene.main.launch(scene.gpu, start + 11 * US + extra, start + 80 * US + extra, start + 81 * US + extra, "relu")
        if extra and cause:
            cause(scene, start, end)
        start = end
    return scene.export


def test_the_range_that_fits_the_excess_explains_it(ask: Ask) -> None:
    """'forward' encloses the excess, but fills the usual steps, too; the device is idle for as long."""
    finding = only_finding(ask("steps.variance", slow_for(None)))
    found = figures(finding)
    assert found["beyond usual steps"] == 100 * US
    assert found["beyond usual steps: 'load'"] == 100 * US
    assert found["beyond usual steps: idle time of GPU 0"] == 100 * US
    assert found["not explained"] == 0
    assert "(+100.0 µs)" in finding.claim
    assert finding.title == "1 slow step of 7: 'load'"


def test_an_idle_device_is_no_explanation(ask: Ask) -> None:
    export = slow_for(None)
    export.rows["NVTX_EVENTS"] = [row for row in export.rows["NVTX_EVENTS"] if row["text"] not in ("load", "forward")]
    finding = only_finding(ask("steps.variance", export))
    assert figures(finding)["beyond usual steps: idle time of GPU 0"] == 100 * US
    assert figures(finding)["not explained"] == 100 * US
    assert finding.title == "1 slow step of 7"


def waits(scene: Scene, start: int, end: int) -> None:
    scene.main.os_call("read", start, start + 90 * US)
    scene.main.off_cpu(start, start + 80 * US)


def collects(scene: Scene, start: int, end: int) -> None:
    scene.main.range("gc.collect", start, start + 90 * US)


def collects_unseen(scene: Scene, start: int, end: int) -> None:
    """No range tells it, but nine samples at a distance of 10 us."""
    for at in range(start + 5 * US, start + 95 * US, 10 * US):
        scene.main.sample(at, "visit_reachable", "gc_collect_main")


def computes(scene: Scene, start: int, end: int) -> None:
    scene.main.launch(scene.gpu, start + 2 * US, start + 10 * US, start + 110 * US, "validate")


def copies(scene: Scene, start: int, end: int) -> None:
    correlation = scene.main.call("cudaMemcpyAsync_v3020", start + 2 * US, start + 92 * US)
    scene.gpu.copy(start + 5 * US, start + 95 * US, 1 << 20, correlation=correlation)


def communicates(scene: Scene, start: int, end: int) -> None:
    scene.main.launch(scene.gpu, start + 2 * US, start + 10 * US, start + 110 * US, "ncclDevKernel_AllReduce")


@pytest.mark.parametrize(
    ("cause", "what", "us"),
    [
        (waits, "read()", 90),
        (waits, "time off the CPU", 80),
        (collects, "collecting Python garbage", 90),
        (collects_unseen, "collecting Python garbage", 90),
        (computes, "kernels of GPU 0, most in 'validate'", 100),
        (copies, "copies of GPU 0 that no kernel hides", 90),
        (copies, "cudaMemcpyAsync_v3020()", 90),
        (communicates, "exposed communication of GPU 0", 100),
    ],
)
def test_every_kind_of_time_is_compared(ask: Ask, cause: Callable[[Scene, int, int], None], what: str, us: int) -> None:
    """Of the many kinds the three largest are named; the ranges are taken away to make room."""
    export = slow_for(cause)
    kept = [row for row in export.rows["NVTX_EVENTS"] if row["text"] not in ("load", "forward")]
    export.rows["NVTX_EVENTS"] = kept
    assert figures(only_finding(ask("steps.variance", export)))[f"beyond usual steps: {what}"] == us * US


def test_steps_that_do_other_work(ask: Ask) -> None:
    def launches_more(scene: Scene, start: int, end: int) -> None:
        for at in range(start, start + 8 * US, US):
            scene.main.launch(scene.gpu, at, at + US, at + US + 100)

    claim = only_finding(ask("steps.variance", slow_for(launches_more))).claim
    assert "A slow step launches 10 GPU operations, a usual one 2: it does other work." in claim
    assert "other work" not in only_finding(ask("steps.variance", slow_for(None))).claim


def test_what_is_not_explained_is_said(ask: Ask) -> None:
    """No range, call or GPU work fills the excess."""
    finding = only_finding(ask("steps.variance", stepping([100, 100, 100, 300, 100, 100, 100])))
    found = figures(finding)
    assert found["beyond usual steps: 'forward'"] == 100  # half of each step
    assert found["not explained"] == 100
    assert "Up to 100 ns of that is not explained by what was captured." in finding.claim


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
