"""What rules about the ranks of a job share: what they speak of, and what a late rank was doing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from diag.model import units
from diag.ranks.side_by_side import SideBySide
from diag.ranks.summary import RankSummary
from diag.rules import activities
from diag.rules.finding import Subject
from diag.timeline.intervals import Intervals

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


def what_it_did(summary: RankSummary) -> Iterator[str]:
    """The ranges of the launching thread that cover the host's part of the time before collectives, in a sentence."""
    for of in summary.host_time.ranges:
        if of.pattern == summary.steps.pattern:  # a step is around whatever is done in it
            continue
        activity = activities.activity_of_range(of.pattern)
        label = f"{activity.label[:1].upper()}{activity.label[1:]} " if activity else ""
        called = f"{label}('{of.pattern}')" if activity else f"'{of.pattern}'"
        whole = units.time(summary.host_time.total_ns)
        yield f"{called} covers {units.time(of.covered_ns)} of the {whole} that devices waited for its host then."
