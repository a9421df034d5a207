"""Which ranges explain a set of a thread's time."""

from __future__ import annotations

from pathlib import Path

from diag.timeline.explain import cover_by_ranges
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace
from tests.builders.imported import imported
from tests.rules.scenes import Scene


def test_only_the_time_from_the_first_to_the_last_gap_counts(tmp_path: Path) -> None:
    """Both cover the gaps alike; what `long` did long before and after them speaks no more against it."""
    scene = Scene()
    scene.main.range("long", -9000, 9000)
    for start in (0, 100):
        scene.main.range("detail", start, start + 30)
    with imported(scene.export, tmp_path) as case:
        (thread,) = Trace(case, case.sources[0]).threads.values()
        when = Intervals.single(0, 90) | Intervals.single(100, 190)
        best, *_ = cover_by_ranges(thread, when, least_share=0.1)
        assert (best.pattern, best.covered_ns) == ("long", 180)


def test_a_loop_around_many_gaps_explains_less_than_what_fits_them(tmp_path: Path) -> None:
    scene = Scene()
    scene.main.range("loop", 0, 1000)
    for start in range(0, 1000, 100):
        scene.main.range("load", start, start + 20)
    with imported(scene.export, tmp_path) as case:
        (thread,) = Trace(case, case.sources[0]).threads.values()
        starts = list(range(0, 1000, 100))
        when = Intervals.union_of(starts, [start + 20 for start in starts])
        best, *_ = cover_by_ranges(thread, when, least_share=0.1)
        assert (best.pattern, best.count) == ("load", 10)


def test_what_holds_all_of_many_gaps_explains_nothing(tmp_path: Path) -> None:
    """Main program and profiler's step fit best, for the device hardly works; the model's code says more."""
    scene = Scene()
    scene.main.range("<module>", -10, 1000)
    scene.main.range("ProfilerStep#1", 5, 990)
    scene.main.range("forward", 10, 950)
    with imported(scene.export, tmp_path) as case:
        (thread,) = Trace(case, case.sources[0]).threads.values()
        starts = list(range(0, 1000, 100))
        when = Intervals.union_of(starts, [start + 95 for start in starts])
        best, *_ = cover_by_ranges(thread, when, least_share=0.1)
        assert best.pattern == "forward"
