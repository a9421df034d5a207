"""The steps of a thread, found in the tracks of its ranges.

`diag.timeline.steps.find_steps` does it for rules, on all ranges of a thread; here its criteria hold for one depth, so
that no more than a track has to be read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from diag.timeline.steps import PROFILER_STEP
from diag.timeline.track import Slices
from diag.tui.timeline.lines import StepSlices
from diag.tui.timeline.pens import STEP

MOST_NAMES = 1 << 13
"""Different names: where there are more, they do not repeat."""


def steps_among(
    slices: Slices, pattern_of: Callable[[int], str], span_ns: int, fewest: float, least_cover: float
) -> StepSlices | None:
    """The pattern whose instances follow each other, at least `fewest` times, and cover most of the thread's span, at
    least `least_cover` of it; ranges of PyTorch's profiler are steps whatever they cover."""
    ids, inverse = np.unique(slices.name_id, return_inverse=True)
    if len(ids) > MOST_NAMES:
        return None
    patterns, label_of_id = np.unique([pattern_of(name_id) for name_id in ids.tolist()], return_inverse=True)
    labels = label_of_id[inverse]
    cover = np.bincount(labels, slices.end_ns - slices.start_ns, len(patterns)) / max(span_ns, 1)
    cover[patterns == PROFILER_STEP] = np.inf
    enough = (np.bincount(labels, minlength=len(patterns)) >= fewest) & (cover >= least_cover)
    for label in sorted(np.flatnonzero(enough).tolist(), key=lambda at: -cover[at]):
        mine = slices.select(labels == label)
        if (mine.start_ns[1:] >= mine.end_ns[:-1]).all():
            return StepSlices(str(patterns[label]), replace(mine, activity=np.full(len(mine), STEP, np.int8)))
    return None
