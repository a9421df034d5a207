"""What the tables of a comparison say: the same rows whether they are set in columns or in Markdown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from diag.compare.changes import Change
from diag.compare.comparison import Comparison
from diag.compare.tables import ProfiledChange
from diag.render import phrases
from diag.render.comparison_phrases import (
    NOT_THERE,
    number,
    signed_share,
    signed_time,
    tally,
    time_of,
)
from diag.render.comparison_serving import serving_tables
from diag.render.table import Table
from diag.rules.document import SpeedOfLightOf

NOTHING = SpeedOfLightOf()


def tables(comparison: Comparison, top: int) -> list[Table]:
    """Those that have something to say, in reading order."""
    made = [
        *serving_tables(comparison),
        devices(comparison),
        kernels(comparison, top),
        launches(comparison, top),
        ranges(comparison, top),
    ]
    return [table for table in made if table.rows]


def devices(comparison: Comparison) -> Table:
    changes = comparison.figures
    several = len({change.place for change in changes}) > 1
    rows = [
        [
            time_of(change.before),
            time_of(change.after),
            signed_share(change.ratio),
            change.answer,
            f"{change.place}: {change.name}" if several else change.name,
        ]
        for change in changes
    ]
    return Table(
        "Devices",
        ("before", "after", "change", "answer", "time"),
        rows,
        name_column=4,
        notes=_notes(changes, len(rows)),
    )


def kernels(comparison: Comparison, top: int) -> Table:
    moved = [change for change in comparison.kernels if change.moved_ns]
    return Table(
        "Kernels, by how much they moved",
        ("moved", "of run", "answer", "a launch", "launches", "kernel"),
        [
            [
                signed_time(change.moved_ns),
                signed_share(change.share),
                change.answer,
                _one(change),
                _counts(change),
                _kernel(comparison, change),
            ]
            for change in moved[:top]
        ],
        name_column=5,
        notes=_notes(comparison.kernels, top),
        wraps_names=True,
    )


def launches(comparison: Comparison, top: int) -> Table:
    changes = [each.change for each in comparison.launches]
    return Table(
        "Kernels as Nsight Compute measured them",
        ("answer", "before", "after", "SM", "memory", "DRAM", "launches", "kernel"),
        [_launch_row(comparison, each) for each in comparison.launches[:top]],
        name_column=7,
        notes=[
            *_notes(changes, top),
            "SM, memory and DRAM: speed of light in percent. Launches ran one by one under the profiler's clocks, not "
            "as the run had them.",
        ],
        wraps_names=True,
    )


def _launch_row(comparison: Comparison, each: ProfiledChange) -> list[str]:
    change, before, after = each.change, each.before_sol or NOTHING, each.after_sol or NOTHING
    return [
        change.answer,
        time_of(change.before),
        time_of(change.after),
        _pair(before.sm_pct, after.sm_pct),
        _pair(before.memory_pct, after.memory_pct),
        _pair(before.dram_pct, after.dram_pct),
        _counts(change),
        _kernel(comparison, change),
    ]


def ranges(comparison: Comparison, top: int) -> Table:
    """Host time, and the GPU time that a range's own thread launched inside it."""
    moved = [each for each in comparison.ranges if each.change.moved_ns]
    return Table(
        "Ranges, by how much they moved",
        ("moved", "of run", "answer", "time", "each", "count", "range"),
        [
            [
                signed_time(each.change.moved_ns),
                signed_share(each.change.share),
                each.change.answer,
                each.time,
                _one(each.change),
                _counts(each.change),
                _placed(comparison, each.change.place, each.change.name),
            ]
            for each in moved[:top]
        ],
        name_column=6,
        notes=[*_notes([each.change for each in comparison.ranges], top), "Ranges contain ranges: they do not add up."],
        wraps_names=True,
    )


# ---- cells ---------------------------------------------------------------------------------------------------------


def _one(change: Change) -> str:
    """Change of the median of what repeats."""
    before, after = change.before, change.after
    if before is None or after is None or not before.median_ns or after.median_ns is None:
        return NOT_THERE
    return signed_share(after.median_ns / before.median_ns - 1)


def _counts(change: Change) -> str:
    counts = [
        NOT_THERE if each is None or each.count is None else number(each.count)
        for each in (change.before, change.after)
    ]
    return counts[0] if counts[0] == counts[1] else " → ".join(counts)


def _pair(before: float | None, after: float | None) -> str:
    return _both(*(NOT_THERE if value is None else f"{value:.0f}" for value in (before, after)))


def _both(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _kernel(comparison: Comparison, change: Change) -> str:
    """Its short name; where several rows share that, how it was launched, or its full name."""
    alike = Counter(each.short_name for each in (*comparison.kernels, *(each.change for each in comparison.launches)))
    name = change.short_name
    if alike[name] > 1 and not change.configuration:
        name = change.name
    how = f" ({change.configuration})" if change.configuration else ""
    return _placed(comparison, change.place, f"{name}{how}")


def _placed(comparison: Comparison, place: str, name: str) -> str:
    several = len({each.place for each in comparison.figures}) > 1
    return f"{place}: {name}" if several and place else name


def _notes(changes: Sequence[Change], shown: int) -> list[str]:
    """How many there are of each answer, the shown ones included."""
    moved = sum(change.moved_ns != 0 for change in changes)
    hidden = f"{phrases.more(moved, shown)} " if moved > shown else ""
    return [f"{hidden}All: {tally(changes)}."]
