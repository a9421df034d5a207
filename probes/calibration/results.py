"""From samples to what a benchmark writes down: ceilings with error and conditions, and latencies."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median

from diag.model import units
from diag.model.benchmark import MeasuredCeiling, Measurement
from diag.model.ceilings import Ceiling
from diag.probes.calibration.sampling import Sampled, percentile

Progress = Callable[[str], None]

CALLS = 1000
"""Whose time together gives the latency of one, which is less than what reading a clock takes."""


def measured_ceiling(sampled: Sampled, conditions: str, sm_count: int | None = None) -> MeasuredCeiling:
    trial, best = sampled.trial, sampled.best
    unit = trial.arithmetic.unit if trial.arithmetic else "bytes/s"
    ceiling = Ceiling(
        per_s=sampled.per_s,
        unit=unit,
        origin="measured",
        formula=f"{trial.formula} / {units.time(median(best.times_ns))}",
        source="diag calibrate",
        arithmetic=trial.arithmetic,
        level=trial.level,
        access=trial.access,
        sm_clock_hz=best.sm_clock_hz,
        memory_clock_hz=best.memory_clock_hz,
        sm_count=sm_count,
        error_share=sampled.error_share,
    )
    return MeasuredCeiling(ceiling, sampled.repeats, conditions, trial.working_set_bytes, sampled.is_spoiled)


def launch_latency(variant: str, calls: Sampled, conditions: str, end_to_end_ns: float | None = None) -> Measurement:
    """Of one of the calls that a trial makes: `work` is how many."""
    times = [ns / calls.trial.work for ns in calls.best.times_ns]
    return Measurement(
        probe="launch_latency",
        variant=variant,
        shape=calls.trial.formula,
        repeats=calls.repeats,
        median_ns=median(times),
        p5_ns=percentile(times, 0.05),
        p95_ns=percentile(times, 0.95),
        conditions=conditions,
        end_to_end_ns=end_to_end_ns,
    )
