"""What rules about the ranks of a job share: what they speak of, and what a late rank was doing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.ranks.job import Job
from diag.ranks.lateness import before_calls
from diag.ranks.side_by_side import SideBySide
from diag.ranks.summarise import launching_thread
from diag.rules import activities
from diag.rules.finding import Subject
from diag.timeline.explain import cover_by_ranges
from diag.timeline.intervals import Intervals, union_of_all

Index = NDArray[np.intp]

IN_WORDS = {
    "compute": "in kernels",
    "host_late": "waiting for the host to launch",
    "launch_latency": "between launch and start",
    "device_side": "on the device, for events or other streams",
    "not_captured": "idle, for a reason that was not captured",
}
"""Of `diag.ranks.summary.BEFORE`."""

ON_THE_HOST = "on its host"
"""Of ranks without GPU work, all time is the host's."""

LEAST_NAMED = 0.2
"""A range is named when it covers a fifth of what is explained; own choice."""


def subject_of(side: SideBySide, ranks: Sequence[int], clock: int | None = None) -> Subject:
    """These ranks (indices of summaries), in the window of one of them, on its clock: the first, if none is given."""
    of = ranks[0] if clock is None else clock
    numbers = tuple(side.summaries[rank].rank or 0 for rank in ranks)
    return Subject(side.summaries[of].source, process=side.summaries[of].pid, ranks=numbers, window=side.span_ns(of))


def whole_job(side: SideBySide) -> Subject:
    return subject_of(side, range(len(side.summaries)))


def window_ns(side: SideBySide, rank: int) -> int:
    start_ns, end_ns = side.span_ns(rank)
    return max(end_ns - start_ns, 1)


def in_words(side: SideBySide, rank: int, part: str) -> str:
    """What a rank spent time on before a collective."""
    return IN_WORDS[part] if side.summaries[rank].has_device else ON_THE_HOST


def within(side: SideBySide, rank: int, when: Intervals) -> Intervals:
    return when.clip(*side.span_ns(rank))


def names(side: SideBySide, ranks: Sequence[int], most: int = 8) -> str:
    """The ranks as people name them: 'rank 3', 'ranks 3, 7'."""
    numbers = [str(side.summaries[rank].rank) for rank in ranks]
    shown = ", ".join(numbers[:most]) + (f" and {len(numbers) - most} more" if len(numbers) > most else "")
    return f"rank {shown}" if len(numbers) == 1 else f"ranks {shown}"


def missing(side: SideBySide) -> int:
    """Ranks of the world that left no file here; 0 where the size of the world is not known."""
    return max((side.world_size or 0) - len(side.summaries), 0)


def unseen(side: SideBySide) -> str:
    """What must be said wherever ranks are missing."""
    if not missing(side):
        return ""
    return (
        f" {units.count(missing(side), 'rank')} of {side.world_size:,} left no file here: one of them may come later "
        "still, and then these wait for it."
    )


def what_it_did(job: Job, rank: int, calls: Index) -> Iterator[str]:
    """The ranges of the launching thread that cover the host's part of the time before these calls, in a sentence."""
    summary = job.side_by_side.summaries[rank]
    for trace in job.traces:
        if trace.source.id != summary.source:
            continue
        process = next((row.id for row in trace.recorded.processes.values() if row.pid == summary.pid), None)
        thread = None if process is None else launching_thread(trace, process)
        if thread is None:
            return
        when = before_calls(summary, calls)
        late = [trace.idle_of(device).host_late for device in trace.devices if device.process_id == process]
        when = when & union_of_all(late) if late else when
        for cover in cover_by_ranges(thread, when, least_share=LEAST_NAMED, most=2):
            if cover.pattern == summary.steps.pattern:  # a step is around whatever is done in it
                continue
            activity = activities.activity_of_range(cover.pattern)
            label = f"{activity.label[:1].upper()}{activity.label[1:]} " if activity else ""
            called = f"{label}('{cover.pattern}')" if activity else f"'{cover.pattern}'"
            yield f"{called} covers {units.time(cover.covered_ns)} of the {units.time(when.measure_ns)} before them."
