"""What of a measurement itself limits the figures: too short, not the same in all passes, without values or samples."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from diag.launches.kernel import ProfiledKernel
from diag.model import units
from diag.model.quantities import Measured
from diag.rules import profiled
from diag.rules.finding import Evidence
from diag.rules.thresholds import Limits

STEADY_NS = 20_000
"""Longer kernels reach a steady state (Nsight Compute, Kernel Profiling Guide, Range and Precision)."""


@dataclass(frozen=True)
class Condition:
    """Something that a reader of the figures must know."""

    says: str
    evidence: Evidence
    step: str


def steadiness(kernel: ProfiledKernel, limits: Limits) -> Iterator[Condition]:
    """Locked clocks that seem to change: cycles and durations come from passes that did not do the same."""
    clock = kernel.quantity("sm_clock")
    if not kernel.launch.is_clock_locked or not isinstance(clock, Measured):
        return
    sql = _OVER_LAUNCHES.format(metric=clock.metrics[0], launch_id=kernel.launch.id)
    least, most, launches = kernel.case.db.execute(sql).fetchone()
    if least < (1 - limits["spread"]) * most:
        rates = f"{units.quantity(least, 'Hz')} to {units.quantity(most, 'Hz')}"
        says = f"{launches:,} launches of it seem to run at {rates}, though the clock was locked: passes differ"
        evidence = Evidence("lowest clock of its launches", least, "Hz", f"least {clock.formula} of them", sql)
        yield Condition(says, evidence, "Collect fewer metrics at once, or make the work of all launches the same")


_OVER_LAUNCHES = """
    SELECT min(v.value) AS least, max(v.value) AS most, count(*) AS launches
      FROM launch of_one
      JOIN launch l ON l.source_id = of_one.source_id AND l.name_id = of_one.name_id
      JOIN launch_metric v ON v.launch_id = l.id AND typeof(v.value) IN ('integer', 'real')
      JOIN metric m ON m.id = v.metric_id AND m.name = '{metric}'
     WHERE of_one.id = {launch_id:d}
"""


def duration(kernel: ProfiledKernel, _: Limits) -> Iterator[Condition]:
    """Whether the launch is long enough for counters of different passes to be divided by each other."""
    took = kernel.quantity("duration")
    if isinstance(took, Measured) and took.value < STEADY_NS:
        says = f"the launch takes {units.time(took.value)}, too short for a steady state: ratios are rough"
        step = "Measure a launch with more work, or fewer metrics at once"
        yield Condition(says, profiled.evidence(kernel, "duration"), step)


def values(kernel: ProfiledKernel, _: Limits) -> Iterator[Condition]:
    """Whether the launch was measured at all: most counters have no value in one that failed or was cut off."""
    sql = _VALUES.format(launch_id=kernel.launch.id)
    without, counters = kernel.case.db.execute(sql).fetchone()
    if 2 * without > counters:
        says = f"the launch was not measured: {without:,} of its {counters:,} counters have no value"
        step = "See whether the kernel runs to its end: compute-sanitizer, or ncu with fewer metrics"
        formula = f"of {counters:,} counters, whose names end in .sum, .avg and the like"
        yield Condition(says, Evidence("counters without a value", without, "count", formula, sql), step)


_VALUES = """
    SELECT count(*) FILTER (WHERE v.value IS NULL) AS without, count(*) AS counters
      FROM launch_metric v JOIN metric m ON m.id = v.metric_id
     WHERE v.launch_id = {launch_id:d} AND m.name LIKE '%.%' AND m.name NOT LIKE 'breakdown:%'
"""


def samples(kernel: ProfiledKernel, limits: Limits) -> Iterator[Condition]:
    """Whether the warp samples speak for the whole of the launch."""
    taken, dropped, coverage = (kernel.quantity(name) for name in _OF_SAMPLES)
    if isinstance(taken, Measured) and taken.value == 0:
        step = "Sample more often: ncu --sampling-interval 0"
        yield Condition("no warp was sampled", profiled.evidence(kernel, "warp_samples"), step)
    elif isinstance(coverage, Measured) and coverage.value < limits["coverage"]:
        says = f"warp samples cover {units.share(coverage.value)} of the launch: there was no room for more"
        yield Condition(says, profiled.evidence(kernel, "sample_coverage"), MORE_ROOM)
    if isinstance(dropped, Measured) and dropped.value > 0:
        yield Condition("warp samples were lost", profiled.evidence(kernel, "dropped_samples"), MORE_ROOM)


_OF_SAMPLES = ("warp_samples", "dropped_samples", "sample_coverage")
MORE_ROOM = "Room for all samples: ncu --sampling-buffer-size, or a longer --sampling-interval"
