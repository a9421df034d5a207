"""Lesson 3: one operator measured many times, and which difference so many times can tell."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import repeat
from statistics import mean, median
from typing import TYPE_CHECKING

from diag.learn.exercises.baseline import exercise
from diag.learn.lesson import Figure, Lab, Lesson, Measured, Question
from diag.learn.loops import RUNS, Loop

if TYPE_CHECKING:
    from diag.probes.measure import Clock
    from diag.probes.probe import Step

REPEATS = {"tiny": 80, "small": 800, "full": 800}

PARTS = 8
"""Of all repeats: the few are one part of these, the many are four."""

WARM_UP_S = 1.0

LOOPS = {"before": Loop(), "again": Loop(), "changed": Loop(products=5)}
"""By the folder of their recordings."""


def measure(lab: Lab) -> Measured:
    from diag.learn.loops import one_core_taken, record_in_turn, run_of_loop
    from diag.probes.measure import clock_of, warm_up
    from diag.probes.measured import opened

    clock, n = clock_of(lab.device), REPEATS[lab.scale]
    with opened(run_of_loop(lab, Loop(products=1))) as workload:
        (step,) = workload.steps
        lab.progress(f"one product, {n} times")
        first_ns = clock.once_ns(step)
        warm_up(repeat(step), clock, WARM_UP_S)
        quiet_ns = _times_ns(clock, step, n)
        lab.progress("the same, while another process has a core")
        with one_core_taken():
            disturbed_ns = _times_ns(clock, step, n // PARTS)
    record_in_turn(lab, LOOPS, RUNS[lab.scale])
    commands = [("compare", str(lab.folder / "before"), str(lab.folder / after)) for after in ("again", "changed")]
    return Measured(figures(first_ns, quiet_ns, disturbed_ns), commands)


def _times_ns(clock: Clock, step: Step, n: int) -> Sequence[float]:
    return [clock.once_ns(step) for _ in range(n)]


def figures(first_ns: float, quiet_ns: Sequence[float], disturbed_ns: Sequence[float]) -> list[Figure]:
    from diag.probes.calibration.sampling import percentile

    n, usual_ns, beside_ns = len(quiet_ns), median(quiet_ns), median(disturbed_ns)
    few, many = n // PARTS, n // 2
    told_by_few, told_by_many = (told(quiet_ns, each) for each in (few, many))
    return [
        Figure("first_ns", first_ns, "ns", "one call"),
        Figure("median_ns", usual_ns, "ns", f"of {n} calls after a warm-up"),
        Figure("mean_ns", mean(quiet_ns), "ns", "of the same calls"),
        Figure("p95_ns", percentile(quiet_ns, 0.95), "ns", "95th percentile of the same calls"),
        Figure("first_ratio", first_ns / usual_ns, "x", "first call / median"),
        Figure("disturbed_ns", beside_ns, "ns", f"median of {len(disturbed_ns)} calls"),
        Figure("disturbed_ratio", beside_ns / usual_ns, "x", "median beside another process / median"),
        Figure("told_by_few", told_by_few, "share", f"half of a 95 % interval, {few} calls of each side, / median"),
        Figure("told_by_many", told_by_many, "share", f"half of a 95 % interval, {many} calls of each side, / median"),
        Figure("finer", told_by_few / told_by_many, "x", f"of {few} calls / of {many} calls"),
    ]


def told(times_ns: Sequence[float], n: int) -> float:
    """The least difference that n calls of each side tell from none, as a share of the median.

    Half of the interval that `diag compare` gives a shift (docs/compare.md), between calls of the same program: those
    of both sides took turns. The median over as many pairs of sides as there are calls for.
    """
    import numpy as np

    from diag.compare.noise import of_repeats

    every, pairs = np.array(times_ns), len(times_ns) // (2 * n)
    halves = []
    for pair in range(pairs):
        shift = of_repeats(every[2 * pair :: 2 * pairs], every[2 * pair + 1 :: 2 * pairs], 0.0)
        assert shift is not None
        halves.append((shift.high_ns - shift.low_ns) / 2)
    return median(halves) / median(times_ns)


LESSON = Lesson(
    number=3,
    slug="baseline",
    questions=(
        Question("first_ratio", "x", close=2.0),
        Question("disturbed_ratio", "x", close=1.3),
        Question("finer", "x", close=1.5),
    ),
    measure=measure,
    exercise=exercise,
)
