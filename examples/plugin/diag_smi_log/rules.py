"""What the counters of nvidia-smi say about clocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.rules.engine import source_rule
from diag.rules.finding import Answer, CannotTell, Clear, Evidence, Finding, Subject
from diag.rules.thresholds import Limits
from diag.timeline.intervals import Intervals
from diag.timeline.trace import Trace
from diag_smi_log.reader import CAPTURE, KIND

NEEDED = ("utilization.gpu", "clocks.current.sm", "clocks.max.sm")


@source_rule("smi.clock")
def clock_below_maximum(trace: Trace, limits: Limits) -> Iterator[Answer]:
    """A busy GPU runs well below the highest clock of its SMs.

    Asks      While a GPU is busy, how much of the time do its SMs run slower than they could?
    Decides   Over the samples of a log of nvidia-smi in which a GPU is busy for at least `busy_share` of the time: one
              is slow where clocks.current.sm is below `clock_ratio` × clocks.max.sm. Fires when slow samples are at
              least `share` of all; needs `fewest` busy ones (nvidia-smi manual, utilization.gpu and clocks).
    Matters   Kernels that compute take longer in the ratio of the clocks, while every timeline looks as full as before.
    Do        See what holds the clock down: nvidia-smi -q -d PERFORMANCE (power, heat, or a clock that somebody set).
    Refute    Run the same program at a higher clock: if it takes as long, memory or the host was the limit.
    """
    if not trace.source.captured(KIND):
        yield CannotTell(Subject(trace.source.id), f"no counters of nvidia-smi were logged ({CAPTURE})")
        return
    if trace.scope is not None:
        yield CannotTell(Subject(trace.source.id), "--window and --range name parts of a timeline, and a log has none")
        return
    gpus = _clocks(trace)
    if not gpus:
        yield CannotTell(Subject(trace.source.id), f"the log lacks one of {', '.join(NEEDED)} ({CAPTURE})")
    for gpu in gpus:
        yield _judged(gpu, trace.source.id, limits)


@dataclass(frozen=True)
class Clocks:
    """One GPU: parallel arrays sorted by time."""

    gpu: int
    time_ns: NDArray[np.int64]
    busy: NDArray[np.float64]  # share of the time before each sample
    sm_mhz: NDArray[np.float64]
    highest_mhz: NDArray[np.float64]

    @property
    def period_ns(self) -> int:
        """The usual time between two samples."""
        return int(np.median(np.diff(self.time_ns))) if len(self.time_ns) > 1 else 0


def _judged(clocks: Clocks, source: int, limits: Limits) -> Answer:
    is_busy = clocks.busy >= limits["busy_share"]
    window = int(clocks.time_ns[0]) - clocks.period_ns, int(clocks.time_ns[-1])
    about = Subject(source, device=clocks.gpu, window=window)
    if (n_busy := int(is_busy.sum())) < limits["fewest"]:
        return CannotTell(about, f"the GPU was busy in {n_busy} samples only: log for longer, while it works")
    ratio = clocks.sm_mhz / clocks.highest_mhz
    is_slow = is_busy & (ratio < limits["clock_ratio"])
    share = float(is_slow.mean())
    if share < limits["share"]:
        return Clear(about)
    mean_ratio = float(ratio[is_slow].mean())
    slow = Intervals.union_of(clocks.time_ns[is_slow] - clocks.period_ns, clocks.time_ns[is_slow])
    won_ns = round(slow.measure_ns * (1 - mean_ratio))
    rows = _ROWS.format(source=source, gpu=clocks.gpu)
    slow_mhz, highest_mhz = float(clocks.sm_mhz[is_slow].mean()), float(clocks.highest_mhz.max())
    return Finding(
        title=f"Busy at {units.share(mean_ratio)} of the SMs' highest clock",
        claim=f"In {units.share(share)} of the samples GPU {clocks.gpu} is busy at {slow_mhz:.0f} MHz on average, of "
        f"{highest_mhz:.0f} MHz that it could run at.",
        subject=about,
        share=share,
        recoverable_ns=won_ns,
        confidence="medium",
        counterfactual=f"At the highest clock, work that only the SMs bound would win {units.time(won_ns)} at most.",
        evidence=[
            Evidence("SM clock while slow", slow_mhz * 1e6, "Hz", "mean of clocks.current.sm in slow samples", rows),
            Evidence("highest SM clock", highest_mhz * 1e6, "Hz", "clocks.max.sm", rows),
            Evidence("slow samples", int(is_slow.sum()), "count", "busy, and below clock_ratio × clocks.max.sm"),
            Evidence("samples", len(is_slow), "count", "those with all three counters"),
            Evidence("slow time", slow.measure_ns, "ns", "union of the periods before slow samples"),
        ],
        refute="Run it at a higher clock: if it takes as long, memory or the host was the limit.",
        next=["Ask the driver what holds the clock down: nvidia-smi -q -d PERFORMANCE"],
        extent=slow,
    )


def _clocks(trace: Trace) -> list[Clocks]:
    """One for each GPU of the log; samples that lack one of the counters do not count."""
    columns = trace.case.arrays(_SAMPLES.format(source=trace.source.id), _COLUMNS)
    gpu, time_ns, busy_pct, sm_mhz, highest_mhz = columns.values()
    each = ((one, gpu == one) for one in np.unique(gpu).tolist())
    return [Clocks(one, time_ns[mine], busy_pct[mine] / 100, sm_mhz[mine], highest_mhz[mine]) for one, mine in each]


_COLUMNS = {"gpu": "i4", "time_ns": "i8", "busy_pct": "f8", "sm_mhz": "f8", "highest_mhz": "f8"}
_SAMPLES = """
    SELECT s.device AS gpu, c.time_ns,
           MAX(c.value) FILTER (WHERE n.text = 'utilization.gpu') AS busy_pct,
           MAX(c.value) FILTER (WHERE n.text = 'clocks.current.sm') AS sm_mhz,
           MAX(c.value) FILTER (WHERE n.text = 'clocks.max.sm') AS highest_mhz
      FROM counter_series s
      JOIN name n ON n.id = s.name_id
      JOIN counter c ON c.series_id = s.id
     WHERE s.source_id = {source}
     GROUP BY s.device, c.time_ns
    HAVING busy_pct IS NOT NULL AND sm_mhz IS NOT NULL AND highest_mhz > 0
     ORDER BY s.device, c.time_ns
"""
_ROWS = """
    SELECT s.device, c.time_ns, n.text AS name, c.value, s.unit
      FROM counter_series s JOIN name n ON n.id = s.name_id JOIN counter c ON c.series_id = s.id
     WHERE s.source_id = {source} AND s.device = {gpu} AND n.text IN ('clocks.current.sm', 'clocks.max.sm')
     ORDER BY c.time_ns
"""
