"""Whether the tracks of a case that comes from elsewhere are what pictures rely on: sorted, of names that are known."""

from __future__ import annotations

from typing import get_args

import numpy as np

from diag.ingest.input_file import LATEST_NS, LONGEST_NS
from diag.store.case import Case
from diag.timeline.intervals import Integers, Times
from diag.timeline.track import ACTIVITIES, Bins, Samples, Slices, Track, TrackKind
from diag.timeline.track_store import Tracks

_KINDS = ", ".join(f"'{kind}'" for kind in get_args(TrackKind))

WRONG_ROWS = f"""
    kind NOT IN ({_KINDS}) OR count < 1 OR end_ns NOT BETWEEN start_ns AND {LATEST_NS + LONGEST_NS}
    OR CASE kind WHEN 'counter' THEN series_id IS NULL OR thread_id IS NOT NULL
                 WHEN 'stream' THEN process_id IS NULL OR device IS NULL OR thread_id IS NOT NULL
                 ELSE process_id IS NULL OR thread_id IS NULL END
"""
"""SQL condition on rows of `track` of which no import makes any. A track may be longer than whatever lies on it."""


def tracks_fit(case: Case) -> bool:
    """Raises InputError when columns do not fit each other in length or type."""
    if not case.value("SELECT EXISTS (SELECT 1 FROM track)"):
        return True  # an older case: they are made anew, when they are wanted
    tracks = Tracks(case)
    names = np.array([-1, *case.names])
    return all(_fits(tracks, track, names) for track in tracks.all)


def _fits(tracks: Tracks, track: Track, names: Integers) -> bool:
    if track.kind == "counter":
        return _samples_fit(tracks.samples(track), track)
    bins = tracks.bins(track)
    return _slices_fit(tracks.all_slices(track), track, names) and (bins is None or _bins_fit(bins, track, names))


def _samples_fit(samples: Samples, track: Track) -> bool:
    return _rises(samples.time_ns, track.start_ns, track.end_ns)


def _slices_fit(slices: Slices, track: Track, names: Integers) -> bool:
    longest_ns = int((slices.end_ns - slices.start_ns).max())
    return (
        _rises(slices.start_ns, track.start_ns, track.end_ns)
        and bool((slices.end_ns >= slices.start_ns).all())
        and longest_ns <= track.end_ns - track.start_ns
        and _are_known(slices, names, least_activity=0)
    )


def _bins_fit(bins: Bins, track: Track, names: Integers) -> bool:
    return (
        bool(((bins.busy_ns >= 0) & (bins.busy_ns <= bins.end_ns - bins.start_ns) & (bins.count >= 0)).all())
        and int(bins.count.sum()) <= track.count
        and _rises(bins.first, 0, track.count)
        and _are_known(bins, names, least_activity=-1)
    )


def _are_known(part: Slices | Bins, names: Integers, *, least_activity: int) -> bool:
    is_activity = (part.activity >= least_activity) & (part.activity < len(ACTIVITIES))
    return bool(is_activity.all() and np.isin(part.name_id, names).all())


def _rises(values: Times, least: int, most: int) -> bool:
    return int(values[0]) >= least and int(values[-1]) <= most and bool((values[1:] >= values[:-1]).all())
