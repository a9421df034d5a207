"""Tables about kernels: modelled work of operators, profiled launches, and what NVIDIA's rules say of those."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from diag.model import units
from diag.render import phrases
from diag.render.table import NOT_CAPTURED, Table
from diag.rules.launch_report import LaunchRow
from diag.rules.report import Report
from diag.rules.timeline_report import OperatorRow
from diag.rules.vendor_rules import Summary, summaries


def operators(report: Report, top: int) -> Table:
    """Operators of that device with the work that their shapes tell, by device time."""
    device = phrases.focus(report)
    on_device = [row for row in report.operators if phrases.device_of(report, row) is device]
    rows = [
        [
            units.time(row.gpu_ns),
            NOT_CAPTURED if row.roof_share is None else f"{row.nearest} {units.share(row.roof_share)}",
            units.quantity(row.flops_per_s, "FLOP/s") if row.flops else NOT_CAPTURED,
            NOT_CAPTURED if row.bytes_per_s is None else units.rate(row.bytes_per_s, 1e9),
            f"{row.count:,}",
            NOT_CAPTURED if row.intensity is None else f"{row.intensity:.3g}",
            f"{row.name.removeprefix('aten::')} {row.dtype or ''} {_shapes(row.shapes)}",
        ]
        for row in on_device[:top]
    ]
    return Table(
        f"Operators{phrases.on_device(report)}, work modelled from their shapes",
        ("GPU time", "of its roof", "work", "traffic", "calls", "FLOP/byte", "operator"),
        rows,
        name_column=6,
        notes=[
            "Modelled: FLOPs of the definition, and each tensor moved once. Caches and recomputing change both. "
            f"{_roofs_of(on_device[:top])}"
        ],
        wraps_names=True,
    )


def _roofs_of(rows: Sequence[OperatorRow]) -> str:
    """How the roofs of a table are known."""
    measured = sorted({row.nearest for row in rows if row.nearest and row.roof_origin == "measured"})
    others = any(row.nearest and row.roof_origin != "measured" for row in rows)
    if not measured:
        return "Roofs are printed ones, at boost clock."
    return f"Measured here: {', '.join(measured)}." + (
        " Other roofs are printed ones, at boost clock." if others else ""
    )


def _shapes(shapes: str) -> str:
    """As people write them: 32×2880, 2880×201088; what is no tensor is left out.

    >>> _shapes("[[32,2880],[2880,201088],[]]")
    '32×2880, 2880×201088'
    """
    return ", ".join(part.replace(",", "×") for part in re.findall(r"\[([\d,]+)\]", shapes))


def profiled(report: Report, top: int) -> Table:
    """Kernels as Nsight Compute measured them, in each configuration; those that take most of the run come first."""
    alike: dict[str, list[LaunchRow]] = {}
    for row in report.launches:
        alike.setdefault(row.spoken_for_by, []).append(row)
    groups = sorted(alike.values(), key=_weight, reverse=True)
    has_place, has_bound = any(rows[0].timeline for rows in groups), any(row.bound for row in report.launches)
    rows = [_profiled_row(report, rows, has_place, has_bound) for rows in groups[:top]]
    header = (
        *(("in the run",) if has_place else ()),
        "profiled",
        "at most",
        *(("bound",) if has_bound else ()),
        "SM",
        "memory",
        "launches",
        "kernel",
    )
    return Table(
        "Kernels that Nsight Compute measured",
        header,
        rows,
        name_column=len(header) - 1,
        notes=list(_profiled_notes(report, len(groups) - len(rows))),
        wraps_names=True,
    )


def _weight(rows: Sequence[LaunchRow]) -> tuple[int, float]:
    place = rows[0].timeline
    return (place.total_ns if place else 0, sum(row.duration_ns or 0.0 for row in rows))


def _profiled_row(report: Report, rows: Sequence[LaunchRow], has_place: bool, has_bound: bool) -> list[str]:
    spokesman = next(row for row in rows if row.id == row.spoken_for_by)
    place, durations_ns = spokesman.timeline, [row.duration_ns for row in rows if row.duration_ns is not None]
    won_ns = _most_to_win(report, spokesman)
    return [
        *([units.time(place.total_ns) if place else NOT_CAPTURED] if has_place else []),
        units.time(sum(durations_ns)) if durations_ns else NOT_CAPTURED,
        NOT_CAPTURED if won_ns is None else units.time(won_ns),
        *([spokesman.bound or NOT_CAPTURED] if has_bound else []),
        _percent(spokesman.sol.sm_pct),
        _percent(spokesman.sol.memory_pct),
        f"{len(rows):,}",
        f"{spokesman.short_name} {spokesman.configuration}",
    ]


def _most_to_win(report: Report, row: LaunchRow) -> int | None:
    """The largest bound of the findings about this kernel; None where there is none."""
    bounds = (finding.recoverable_ns for finding in report.findings if finding.subject.launch == row.id)
    return max((bound for bound in bounds if bound is not None), default=None)


def _percent(value: float | None) -> str:
    return NOT_CAPTURED if value is None else f"{value:.1f} %"


def _profiled_notes(report: Report, hidden: int) -> Iterator[str]:
    if hidden:
        yield f"{units.count(hidden, 'more kernel')} (--top shows them)."
    locked = {row.clocks.is_locked for row in report.launches}
    flushed = {row.cache_control for row in report.launches}
    under = [
        *(["at base clock"] if locked == {True} else ["at the clocks of the moment"] if locked == {False} else []),
        *(["with caches flushed before each pass"] if flushed == {"all"} else []),
    ]
    conditions = f" {' and '.join(under)}" if under else ""
    yield (
        f"Measured one by one{conditions}: what was profiled is not what a run takes. At most: the largest bound of "
        "the findings on it, in the run where it is in one. SM, memory: speed of light of each."
    )


def vendor(report: Report, top: int) -> Table:
    """What NVIDIA's own rules said of the launches when they were profiled, beside what ours say."""
    every = summaries(report)
    shown = [each for each in every if each.said == "fault"][:top]
    is_estimated = any(each.speedup_pct is not None for each in shown)
    rows = [
        [
            f"{each.count:,}",
            *([_percent(each.speedup_pct)] if is_estimated else []),
            f"{each.name}; {f'{each.rule}: {_ours(each)}' if each.rule else 'no rule of ours asks this'}",
        ]
        for each in shown
    ]
    notes = [] if len(shown) == len(every) else [f"Of {len(every)} answers, the faults on most launches."]
    header = ("launches", *(["est. speed-up"] if is_estimated else []), "NVIDIA's rule; ours")
    title = "Faults by NVIDIA's rules, beside ours"
    return Table(title, header, rows, len(header) - 1, notes=notes, wraps_names=True)


def _ours(summary: Summary) -> str:
    if len(summary.ours) == 1:
        return next(iter(summary.ours))
    return ", ".join(f"{answer} ({count})" for answer, count in sorted(summary.ours.items()))
